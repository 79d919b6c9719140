//! Real servers: the objects in memory, the configuration and the start of the process.
//!
//! The process enters a private mount namespace with a RAM disk, writes the objects there, and
//! becomes the server. So the disk of station B limits no transfer, and the files disappear with
//! the server, however it ends.

use crate::error::HttpError;
use crate::flow;
use crate::object::Object;
use crate::spec::{Identity, Serve};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use plan::{HttpServer, HttpVersion};
use std::convert::Infallible;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Mount point of the RAM disk: a folder that exists on every Linux and that no server needs.
const FOLDER: &str = "/mnt";
/// Folder of the objects.
const OBJECTS: &str = "/mnt/objects";
/// Room for configuration, certificate, and the server's files.
const OTHER_BYTES: u64 = 64 << 20;

/// Becomes the server.
pub(crate) fn serve(spec: &Serve) -> Result<Infallible, HttpError> {
    let sizes = spec.test.objects();
    let bytes = sizes.iter().sum::<u64>() + OTHER_BYTES;
    // It serves from memory, and needs neither files nor rights to mount.
    if spec.test.server == HttpServer::Plain {
        return flow::serve(spec);
    }
    own_mounts()?;
    ram_disk(Path::new(FOLDER), Some(bytes))?;
    let written = write_objects(&sizes);
    written.map_err(HttpError::system("write the objects"))?;
    let mut server = match spec.test.server {
        HttpServer::Nginx => nginx(spec).map_err(HttpError::system("configure nginx"))?,
        HttpServer::Python | HttpServer::Plain => python(spec),
    };
    // Becomes the server instead of starting it: then it has the process that the station kills.
    let failed = server.exec();
    let name = spec.test.server.name();
    Err(HttpError::system(format!("start {name}"))(failed))
}

/// Moves this process into a private mount namespace.
pub(crate) fn own_mounts() -> Result<(), HttpError> {
    let none: Option<&str> = None;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    // Private, since a shared mount would also appear in the host's namespace.
    unshare(CloneFlags::CLONE_NEWNS)
        .and_then(|()| mount(none, "/", none, private, none))
        .map_err(io::Error::from)
        .map_err(HttpError::system("make a mount namespace"))
}

/// Mounts a RAM disk of this size on a folder; `None` means half of the memory.
pub(crate) fn ram_disk(folder: &Path, bytes: Option<u64>) -> Result<(), HttpError> {
    let options = bytes.map_or_else(String::new, |bytes| format!(",size={bytes}"));
    let options = format!("mode=0755{options}");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(
        Some("tmpfs"),
        folder,
        Some("tmpfs"),
        flags,
        Some(options.as_str()),
    )
    .map_err(io::Error::from)
    .map_err(HttpError::system("mount a RAM disk"))
}

fn write_objects(sizes: &[u64]) -> io::Result<()> {
    fs::create_dir(OBJECTS)?;
    for (number, object) in Object::all(sizes).iter().enumerate() {
        let mut file = File::create(Path::new(OBJECTS).join(Object::name(number)))?;
        object.write_to(&mut file)?;
    }
    Ok(())
}

fn python(spec: &Serve) -> Command {
    let mut command = Command::new("python3");
    command
        .args(["-m", "http.server", "--protocol", "HTTP/1.1"])
        .args(["--directory", OBJECTS])
        .arg(spec.port.to_string())
        // It logs each request to its standard error.
        .stderr(std::process::Stdio::null());
    command
}

fn nginx(spec: &Serve) -> io::Result<Command> {
    let configuration = Path::new(FOLDER).join("nginx.conf");
    fs::write(&configuration, nginx_configuration(spec))?;
    if let Some(Identity { certificate, key }) = &spec.identity {
        fs::write(Path::new(FOLDER).join("server.pem"), certificate)?;
        // The key for its owner alone, from the start.
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(Path::new(FOLDER).join("server.key"))?;
        file.write_all(key.as_bytes())?;
    }
    let mut command = Command::new("nginx");
    command
        .args(["-e", "stderr", "-c"])
        .arg(&configuration)
        .args(["-g", "daemon off;"]);
    Ok(command)
}

/// Unnamed settings have nginx's defaults.
fn nginx_configuration(spec: &Serve) -> String {
    // A connection and a file each, and some to spare.
    let descriptors = u64::from(spec.test.connections) * 2 + 1024;
    let tls = if spec.identity.is_some() { " ssl" } else { "" };
    let http2 = match spec.test.version {
        HttpVersion::Http1 => "",
        HttpVersion::Http2 => " http2",
    };
    let identity = match spec.identity {
        Some(_) => format!(
            "ssl_certificate {FOLDER}/server.pem; ssl_certificate_key {FOLDER}/server.key; \
             ssl_protocols TLSv1.3; ssl_session_cache off; ssl_session_tickets off;"
        ),
        None => String::new(),
    };
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|of| format!("{of}_temp_path {FOLDER}/{of};"));
    format!(
        "user root root;\n\
         worker_processes {};\n\
         worker_rlimit_nofile {descriptors};\n\
         pid {FOLDER}/nginx.pid;\n\
         error_log stderr crit;\n\
         events {{ worker_connections {descriptors}; }}\n\
         http {{\n\
         access_log off;\n\
         sendfile on; tcp_nopush on;\n\
         keepalive_timeout 1h; keepalive_requests 1000000000;\n\
         {}\n\
         server {{ listen {}{tls}{http2} backlog=65535; root {OBJECTS}; {identity} }}\n\
         }}\n",
        spec.workers.max(1),
        temporary.join(" "),
        spec.port,
    )
}
