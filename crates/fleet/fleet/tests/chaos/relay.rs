//! A network between an agent and its server that can be cut.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// What it does with what comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Network {
    /// Passes it on.
    Open,
    /// Passes it on after that long.
    Slow(Duration),
    /// Keeps it back, as a cable that is out: no end of a connection is noticed.
    Silent,
    /// Ends every connection.
    Closed,
}

struct State {
    network: Network,
    streams: Vec<TcpStream>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// A relay of TCP connections to a server; its threads end with the program.
pub(crate) struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Relay {
    pub(crate) fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                network: Network::Open,
                streams: Vec::new(),
            }),
            changed: Condvar::new(),
        });
        let relay = Self {
            address,
            shared: Arc::clone(&shared),
        };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                shared.join(client, server);
            }
        });
        relay
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    pub(crate) fn set(&self, network: Network) {
        let mut state = self.shared.state.lock().unwrap();
        state.network = network;
        if network == Network::Closed {
            for stream in state.streams.drain(..) {
                // It may have ended by itself.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn join(self: &Arc<Self>, client: TcpStream, server: SocketAddr) {
        let Ok(upstream) = TcpStream::connect(server) else {
            return;
        };
        let mut state = self.state.lock().unwrap();
        if state.network == Network::Closed {
            return;
        }
        for (from, to) in [(&client, &upstream), (&upstream, &client)] {
            state.streams.push(from.try_clone().unwrap());
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let shared = Arc::clone(self);
            thread::spawn(move || shared.pump(from, to));
        }
    }

    fn pump(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let state = self.state.lock().unwrap();
            let is_silent = |state: &mut State| state.network == Network::Silent;
            let state = self.changed.wait_while(state, is_silent).unwrap();
            let network = state.network;
            drop(state);
            match network {
                Network::Closed => break,
                Network::Slow(delay) => thread::sleep(delay),
                Network::Open | Network::Silent => {}
            }
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        // An end is passed on too, once anything is.
        let state = self.state.lock().unwrap();
        let is_silent = |state: &mut State| state.network == Network::Silent;
        drop(self.changed.wait_while(state, is_silent).unwrap());
        for stream in [from, to] {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
