//! AF_PACKET: whole frames to and from an interface. Needs CAP_NET_RAW in the interface's network
//! namespace.

mod outgoing;
mod prompt;
mod receive;
mod send;

pub use outgoing::OutgoingReceiver;
pub use prompt::PromptReceiver;
pub use receive::PacketReceiver;
pub use send::PacketSender;
