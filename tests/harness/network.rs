//! Nodes of a cluster on this one machine: network namespaces with names and addresses of their own (`ci/nodes`). They end
//! with the test.

use std::path::Path;
use std::process::{self, Command};

use crate::{Failed, command, ensure, job, place};

/// The most networks that a machine can have at once.
const NUMBERS: u32 = 256;
/// The exit status of `ci/nodes up` for a number that is in use.
const IN_USE: i32 = 3;

/// Some nodes, and the network between them.
#[derive(Debug)]
pub struct Network {
    number: u32,
    nodes: u32,
}

fn script() -> Command {
    Command::new(place::project().join("ci/nodes"))
}

impl Network {
    /// Makes so many nodes; needs root.
    pub fn up(nodes: u32) -> Result<Network, Failed> {
        for number in (0..NUMBERS).map(|step| (process::id() + step) % NUMBERS) {
            let mut up = script();
            up.args(["up", &number.to_string(), &nodes.to_string()]);
            let said = up
                .output()
                .map_err(|error| format!("{}: {error}", command::describe(&up)))?;
            if said.status.code() == Some(IN_USE) {
                continue;
            }
            let network = Network { number, nodes };
            ensure!(
                said.status.success(),
                "no nodes can be made (as root?): {}",
                String::from_utf8_lossy(&said.stderr)
            );
            return Ok(network);
        }
        Err(format!("all {NUMBERS} networks are in use"))
    }

    /// Returns the host name of a node.
    pub fn host(&self, node: u32) -> String {
        format!("sp{}n{}", self.number, node + 1)
    }

    /// Returns the address of every node.
    pub fn addresses(&self) -> Vec<String> {
        let nodes = 1..=self.nodes;
        let address = |node| format!("10.77.{}.{node}", self.number);
        nodes.map(address).collect()
    }

    /// Returns the address by which nodes know the machine that they are on.
    pub fn outside(&self) -> String {
        format!("10.77.{}.254", self.number)
    }

    /// Returns a command that runs a command line on a node; the caller adds that line as an argument.
    pub fn on(&self, node: u32) -> Command {
        let mut command = script();
        command.args(["shell", &format!("10.77.{}.{}", self.number, node + 1)]);
        command
    }

    /// Returns `mpirun` with one rank a node. A rank sees only its own node's files in the directories `own.*`.
    pub fn mpirun(&self, own: &Path) -> Command {
        let places: Vec<(u32, u32)> = (0..self.nodes).map(|node| (node, 1)).collect();
        self.mpirun_on(&places, own)
    }

    /// Returns `mpirun` with so many ranks on each of some nodes.
    pub fn mpirun_on(&self, places: &[(u32, u32)], own: &Path) -> Command {
        let net = format!("10.77.{}", self.number);
        let hosts: Vec<String> = places
            .iter()
            .map(|(node, ranks)| format!("{net}.{}:{ranks}", node + 1))
            .collect();
        let mut command = job::mpirun(places.iter().map(|(_, ranks)| ranks).sum());
        let agent = format!("{} shell", place::project().join("ci/nodes").display());
        command.args(["--host", &hosts.join(",")]);
        for (parameter, value) in [
            ("plm_rsh_agent", agent),
            ("plm_rsh_no_tree_spawn", "1".to_owned()),
            ("oob_tcp_if_include", format!("{net}.0/24")),
            ("btl_tcp_if_include", format!("{net}.0/24")),
        ] {
            command.args(["--mca", parameter, &value]);
        }
        command.env("STILLPOINT_NODES_OWN", own);
        command
    }

    /// Takes a node's link away. Its processes live on.
    pub fn cut(&self, node: u32) -> Result<(), Failed> {
        self.change("cut", node, &[])
    }

    /// Gives a node its link back.
    pub fn mend(&self, node: u32) -> Result<(), Failed> {
        self.change("mend", node, &[])
    }

    /// Limits a node's outgoing rate, as tc writes it.
    pub fn pace(&self, node: u32, rate: &str) -> Result<(), Failed> {
        self.change("pace", node, &[rate])
    }

    /// Returns the processes on a node.
    pub fn processes(&self, node: u32) -> Result<Vec<i32>, Failed> {
        let said = self.ask("processes", node, &[])?;
        let ids = said.split_whitespace();
        Ok(ids.filter_map(|id| id.parse().ok()).collect())
    }

    fn change(&self, action: &str, node: u32, more: &[&str]) -> Result<(), Failed> {
        self.ask(action, node, more).map(drop)
    }

    fn ask(&self, action: &str, node: u32, more: &[&str]) -> Result<String, Failed> {
        let mut command = script();
        command.args([action, &self.number.to_string(), &(node + 1).to_string()]);
        let said = command.args(more).output();
        let said = said.map_err(|error| format!("{}: {error}", command::describe(&command)))?;
        ensure!(
            said.status.success(),
            "{}: {}",
            command::describe(&command),
            String::from_utf8_lossy(&said.stderr)
        );
        Ok(String::from_utf8_lossy(&said.stdout).into_owned())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let mut down = script();
        down.args(["down", &self.number.to_string(), &self.nodes.to_string()]);
        // An error cannot be reported here.
        let _ = down.output();
    }
}
