//! A cluster of three servers, which are killed.

use crate::site::{PATIENCE, Site, access, end, kill};
use fleet::{Fleet, Selector, Server, State, free_address};
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SERVERS: usize = 3;

/// The servers; they end with their owner.
struct Cluster {
    site: Site,
    servers: Vec<Child>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for server in &mut self.servers {
            // One that the test has killed is not started again if it fails then.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

fn write_config(folder: &Path, number: usize, clients: SocketAddr, routes: &[SocketAddr]) {
    let others: String = routes
        .iter()
        .map(|route| format!("    nats://{route}\n"))
        .collect();
    let text = format!(
        "listen: \"{clients}\"\nserver_name: server-{number}\n\
         jetstream {{\n  store_dir: {:?}\n  sync_interval: always\n}}\n\
         cluster {{\n  name: fleet\n  listen: \"{}\"\n  routes: [\n{others}  ]\n}}\n",
        folder.join("store"),
        routes[number]
    );
    fs::create_dir(folder).unwrap();
    fs::write(folder.join("nats.conf"), text).unwrap();
}

fn start(folder: &Path) -> Child {
    let log = File::options()
        .create(true)
        .append(true)
        .open(folder.join("log"))
        .unwrap();
    Command::new(Server::program().unwrap())
        .arg("--config")
        .arg(folder.join("nats.conf"))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

impl Cluster {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let addresses =
            || -> Vec<SocketAddr> { (0..SERVERS).map(|_| free_address().unwrap()).collect() };
        let (clients, routes) = (addresses(), addresses());
        let servers = (0..SERVERS).map(|number| {
            let of_server = folder.path().join(format!("server-{number}"));
            write_config(&of_server, number, clients[number], &routes);
            start(&of_server)
        });
        let servers = servers.collect();
        let urls: Vec<String> = clients.iter().map(|at| format!("nats://{at}")).collect();
        let site = Site::of(folder, &urls.join(","));
        let cluster = Self { site, servers };
        cluster.await_fleet();
        cluster
    }

    fn await_fleet(&self) {
        let site = &self.site;
        let since = Instant::now();
        // Until the servers have found one another and chosen a leader.
        while let Err(error) = site
            .runtime
            .block_on(Fleet::set_up(&access(&site.url()), Some(SERVERS)))
        {
            assert!(since.elapsed() < PATIENCE, "{error}\n{}", site.logs());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn restart(&mut self, number: usize) {
        let folder = self.site.folder.path().join(format!("server-{number}"));
        self.servers[number] = start(&folder);
    }

    /// Waits until every server has all of every bucket.
    fn await_copies(&self) {
        let site = &self.site;
        let streams = async || -> Result<bool, async_nats::Error> {
            let client = async_nats::ConnectOptions::new()
                .connection_timeout(Duration::from_secs(2))
                .connect(site.url().split(',').map(str::to_owned).collect::<Vec<_>>())
                .await?;
            let context = async_nats::jetstream::new(client);
            for bucket in [
                "KV_fleet-jobs",
                "KV_fleet-states",
                "KV_fleet-labs",
                "OBJ_fleet-files",
            ] {
                let mut stream = context.get_stream(bucket).await?;
                let info = stream.info().await?;
                let Some(cluster) = &info.cluster else {
                    return Ok(false);
                };
                let current = cluster.replicas.iter().filter(|peer| peer.current);
                if cluster.leader.is_none() || current.count() != SERVERS - 1 {
                    return Ok(false);
                }
                assert_eq!(info.config.num_replicas, SERVERS);
            }
            Ok(true)
        };
        site.await_some("copies of everything on each server", || {
            let all = site.runtime.block_on(streams());
            all.is_ok_and(|all| all).then_some(())
        });
    }
}

/// One server after the other is killed while jobs run.
pub(crate) fn killed_one_by_one() {
    let mut cluster = Cluster::new();
    let labs = ["one", "two", "three"];
    let agents = labs.map(|lab| cluster.site.start(lab, lab));
    let mut jobs = 0;
    for killed in 0..2 {
        let site = &cluster.site;
        let held = site.submit(jobs, "held", Selector::default());
        for number in 1..4 {
            site.submit(jobs + number, "fine", Selector::default());
        }
        jobs += 4;
        site.await_running(&held);
        kill(cluster.servers[killed].id());
        cluster.servers[killed].wait().unwrap();
        // Two of three go on: jobs end, and others are taken.
        let site = &cluster.site;
        site.submit(jobs, "fine", Selector::default());
        jobs += 1;
        labs.iter().for_each(|name| site.go(name));
        site.await_all("at an end with two servers", State::is_final);
        for name in labs {
            fs::remove_file(site.agent_folder(name).join("go")).unwrap();
        }
        cluster.restart(killed);
        cluster.await_copies();
    }
    let site = &cluster.site;
    let states = site.await_all("done", |state| matches!(state, State::Done { .. }));
    assert_eq!(states.len(), jobs);
    let fleet = site.fleet();
    for (id, state) in &states {
        let State::Done { held, exit } = state else {
            panic!("{state:?}");
        };
        // No agent was killed: each ran once.
        assert_eq!((held.attempt, *exit), (1, 0), "{id}: {state:?}");
        site.check_run(&fleet, id);
    }
    site.check_history(&fleet, jobs);
    // Parts without a file are removed, by what the leader says, and no others.
    let removed = site.runtime.block_on(async {
        let client =
            async_nats::connect(site.url().split(',').map(str::to_owned).collect::<Vec<_>>());
        let context = async_nats::jetstream::new(client.await.unwrap());
        let part = context
            .publish("$O.fleet-files.C.left", "part".into())
            .await;
        part.unwrap().await.unwrap();
        fleet.remove_leftovers(Duration::ZERO).await.unwrap()
    });
    assert_eq!(removed, 1);
    states.keys().for_each(|id| site.check_run(&fleet, id));
    // Another set-up keeps the copies as they are.
    let access = access(&site.url());
    site.runtime.block_on(Fleet::set_up(&access, None)).unwrap();
    cluster.await_copies();
    agents.into_iter().for_each(end);
}
