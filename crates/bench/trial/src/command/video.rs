//! Commands of trials of video: this program on both stations. Each prepares the clip; then B
//! serves it, and A plays it.

use super::{CommandError, Commands, Cores, Preparation, sub_command_on};
use crate::timing::Timing;
use journal::record::ToolParameters;
use plan::{VideoTest, VideoTransport};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use testbed::NodeId;
use testbed::protocol::Ready;
use video::{Prepare, RTP_MARKER, Receive, Serve, Spec, datagram_bytes};

/// Name of the subcommand that plays a part.
pub(crate) const SUB_COMMAND: &str = "video";
/// Folder of the clips, in each station's private file system.
const FOLDER: &str = "/run/cipherbench-video";
/// TCP port of the server, of streams and of files.
const PORT: u16 = 8554;
/// UDP port of the first stream.
const FIRST_PORT: u16 = 5004;

pub(super) fn commands(
    test: &VideoTest,
    (target, mtu): (Ipv4Addr, u16),
    cores: &Cores,
) -> Result<Commands, CommandError> {
    let (test, folder) = (*test, PathBuf::from(FOLDER));
    let prepare = Spec::Prepare(Prepare {
        test,
        folder: folder.clone(),
    });
    let preparations = [(NodeId::B, &cores.b), (NodeId::A, &cores.a)];
    let datagram_bytes = datagram_bytes(mtu);
    let server = Spec::Serve(Serve {
        test,
        folder: folder.clone(),
        port: PORT,
        datagram_bytes,
    });
    let client = Spec::Receive(Receive {
        test,
        folder,
        server: SocketAddrV4::new(target, PORT),
        first_port: FIRST_PORT,
    });
    let (marker, datagram_bytes) = match test.transport {
        VideoTransport::Rtp => (RTP_MARKER.to_vec(), Some(datagram_bytes.into())),
        // No bytes of a compressed video in TCP are known.
        VideoTransport::Http => (Vec::new(), None),
    };
    Ok(Commands {
        cores: cores.clone(),
        preparations: preparations
            .map(|(node, cores)| Preparation {
                node,
                program: sub_command_on(SUB_COMMAND, &prepare, cores, Ready::Started),
            })
            .into(),
        baseline: None,
        servers: vec![sub_command_on(
            SUB_COMMAND,
            &server,
            &cores.b,
            Ready::Listening(PORT),
        )],
        clients: vec![sub_command_on(
            SUB_COMMAND,
            &client,
            &cores.a,
            Ready::Started,
        )],
        parameters: ToolParameters {
            datagram_bytes,
            ..ToolParameters::default()
        },
        timing: Timing::of_video(&test),
        marker,
    })
}
