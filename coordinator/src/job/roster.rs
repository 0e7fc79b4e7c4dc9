//! The ranks of a job: which have come, which have gone, and how.

mod other_programs;

use std::collections::BTreeMap;
use std::fmt;

use stillpoint_ids::Rank;
use stillpoint_protocol::agent::{Dedup, Hello};
use stillpoint_protocol::command::RankStatus;
use stillpoint_refusals::{Refusal, refusal};

use super::member::{Life, Location, Member};
use super::rank_names::ranks_in_words;

/// The consequence for a rank whose connection has ended because its host was silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SilenceOutcome {
    /// It may come back.
    Silent,
    /// It had reported that it ends.
    Over,
}

/// All ranks.
#[derive(Clone, Debug)]
pub struct Roster {
    members: Vec<Member>,
    /// The error that two processes start MPI as one rank, if they do.
    twice: Option<Refusal>,
}

/// The name of a rank with its process, for people.
pub struct Named<'a> {
    rank: Rank,
    hello: Option<&'a Hello>,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.rank)?;
        if let Some(hello) = self.hello {
            write!(f, " (process {} on {})", hello.pid, hello.host)?;
        }
        Ok(())
    }
}

impl Roster {
    pub fn new(size: u32) -> Roster {
        Roster {
            members: vec![Member::starting(); size as usize],
            twice: None,
        }
    }

    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// Takes a rank in. The error is for its agent.
    pub fn admit(&mut self, hello: Hello, launch: &str) -> Result<(), Refusal> {
        let size = self.members.len();
        if hello.launch != launch {
            return Err(refusal!(
                NoJob,
                "this coordinator serves launch {launch}, but the rank is of launch {}",
                hello.launch
            ));
        }
        if hello.size as usize != size {
            return Err(refusal!(
                NoJob,
                "this job has {size} ranks, but the rank expects {}",
                hello.size
            ));
        }
        let Some(member) = self.members.get_mut(hello.rank.index()) else {
            return Err(refusal!(
                NoJob,
                "this job has {size} ranks and no rank {}",
                hello.rank
            ));
        };
        if member.is_taken_by_another(&hello) {
            let reason = refusal!(
                RankTwice,
                "two processes start MPI as rank {} of this launch, {} and {} on {}: a launcher inside `stillpoint \
                 run` starts ranks that Stillpoint cannot restart; put the launcher first, as in mpirun -n 2 \
                 stillpoint run -- APP",
                hello.rank,
                member.hello.as_ref().map_or(0, |known| known.pid),
                hello.pid,
                hello.host
            );
            self.twice = Some(reason.clone());
            return Err(reason);
        }
        if hello.returns && member.is_of(&hello) {
            member.connected = true;
            member.silent = false;
            member.hello = Some(hello);
            return Ok(());
        }
        // It has handed over to another process, and cannot take that back.
        if hello.returns && member.connected {
            return Err(refusal!(
                NoJob,
                "rank {} is another process now",
                hello.rank
            ));
        }
        // A program that does not use MPI yet may hand over, as a script does to a program that it starts.
        if !matches!(member.life, Life::Starting | Life::Connected) {
            return Err(refusal!(
                NoJob,
                "rank {} has already connected once",
                hello.rank
            ));
        }
        member.life = Life::Connected;
        member.connected = true;
        member.hello = Some(hello);
        member.unsplit = None;
        Ok(())
    }

    /// The error that makes checkpoints of this launch impossible.
    pub fn twice(&self) -> Option<&Refusal> {
        self.twice.as_ref()
    }

    /// Whether this is the agent of a known rank that comes back.
    pub fn returns(&self, hello: &Hello) -> bool {
        let member = self.get(hello.rank);
        hello.returns && member.is_some_and(|member| member.is_of(hello))
    }

    /// Handles the end of a rank's connection because its host was silent.
    pub fn cut(&mut self, rank: Rank) -> SilenceOutcome {
        let Some(member) = self.members.get_mut(rank.index()) else {
            return SilenceOutcome::Over;
        };
        member.connected = false;
        match member.life {
            Life::Ended(_) | Life::Lost => SilenceOutcome::Over,
            _ => {
                member.silent = true;
                SilenceOutcome::Silent
            }
        }
    }

    /// Counts a silent rank as lost.
    pub fn give_up(&mut self, rank: Rank) {
        if let Some(member) = self.members.get_mut(rank.index()) {
            member.silent = false;
            member.life = Life::Lost;
        }
    }

    /// Ranks that cannot be reached.
    pub fn silent(&self) -> impl Iterator<Item = Rank> + '_ {
        let silent = self.iter().filter(|(_, member)| member.silent);
        silent.map(|(rank, _)| rank)
    }

    /// Whether ranks on other hosts cannot be reached, and none on other hosts is connected.
    pub fn is_isolated(&self, here: &Location) -> bool {
        let elsewhere = |m: &&Member| m.hello.as_ref().is_some_and(|h| Location::of(h) != *here);
        let others = || self.members.iter().filter(elsewhere);
        others().any(|member| member.silent) && others().all(|member| !member.connected)
    }

    /// Whether another host with a rank has the same name as this rank's host.
    pub fn shares_its_name(&self, rank: Rank) -> bool {
        let Some(mine) = self.get(rank).and_then(|member| member.hello.as_ref()) else {
            return false;
        };
        let others = self.members.iter().filter_map(|it| it.hello.as_ref());
        let mut named = others.filter(|other| other.host == mine.host);
        named.any(|other| other.namespace.is_of_another_boot(mine.namespace))
    }

    /// The host of a rank.
    pub fn host(&self, rank: Rank) -> &str {
        let hello = self.get(rank).and_then(|member| member.hello.as_ref());
        hello.map_or("its host", |hello| hello.host.as_str())
    }

    /// Describes ranks that cannot be reached, by their hosts.
    pub fn cut_off(&self, ranks: impl IntoIterator<Item = Rank>) -> String {
        let mut by_host: BTreeMap<&str, Vec<Rank>> = BTreeMap::new();
        for rank in ranks {
            by_host.entry(self.host(rank)).or_default().push(rank);
        }
        let words = by_host.iter().map(|(host, ranks)| {
            let who = ranks_in_words(ranks, self.size());
            format!("{who} on {host}")
        });
        format!("{} cannot be reached", words.collect::<Vec<_>>().join(", "))
    }

    pub fn get(&self, rank: Rank) -> Option<&Member> {
        self.members.get(rank.index())
    }

    pub fn set_life(&mut self, rank: Rank, life: Life) {
        if let Some(member) = self.members.get_mut(rank.index()) {
            member.life = life;
        }
    }

    /// Handles the end of a rank's connection. Returns whether the rank is lost: it used MPI, and had not reported its end. Before it uses MPI, the process
    /// may just have become another program (`execve(2)`), which will connect.
    pub fn disconnect(&mut self, rank: Rank) -> bool {
        let Some(member) = self.members.get_mut(rank.index()) else {
            return false;
        };
        member.connected = false;
        let restarted = member
            .hello
            .as_ref()
            .is_some_and(|h| h.restarted_from.is_some());
        if member.life == Life::Connected && !restarted {
            member.life = Life::Starting;
            return false;
        }
        let lost = !matches!(member.life, Life::Ended(_));
        if lost {
            member.life = Life::Lost;
        }
        lost
    }

    pub fn named(&self, rank: Rank) -> Named<'_> {
        let hello = self.get(rank).and_then(|r| r.hello.as_ref());
        Named { rank, hello }
    }

    pub fn iter(&self) -> impl Iterator<Item = (Rank, &Member)> {
        Rank::of_each(&self.members)
    }

    /// The range within which each rank's equal memory is written once: the ranks of its host that see its processes. The first of these keeps the table.
    pub fn nodes(&self) -> Vec<Dedup> {
        let location = |h: &Hello| (Location::of(h), h.pid);
        let hosts = |member: &Member| member.hello.as_ref().map(location);
        let mut nodes: BTreeMap<Location, (u32, usize)> = BTreeMap::new();
        for (host, pid) in self.members.iter().filter_map(hosts) {
            nodes.entry(host).or_insert((pid, 0)).1 += 1;
        }
        let node = |member: &Member| match hosts(member).and_then(|(host, _)| nodes.get(&host)) {
            Some((keeper, 2..)) => Dedup::Node { keeper: *keeper },
            _ => Dedup::Rank,
        };
        self.members.iter().map(node).collect()
    }

    /// Ranks whose agents have not come yet.
    pub fn starting(&self) -> impl Iterator<Item = Rank> + '_ {
        self.iter()
            .filter(|(_, r)| r.life == Life::Starting)
            .map(|(rank, _)| rank)
    }

    /// The ranks whose restored agents have not come yet. In a restart, processes that gather blocks are connected before that.
    pub fn gathering(&self) -> impl Iterator<Item = Rank> + '_ {
        let begun = |member: &Member| {
            let hello = member.hello.as_ref();
            member.life != Life::Starting && hello.is_some_and(|h| h.restarted_from.is_some())
        };
        let all = self.iter().filter(move |(_, r)| !begun(r));
        all.map(|(rank, _)| rank)
    }

    /// Whether no rank is connected (any more).
    pub fn nobody_connected(&self) -> bool {
        self.members.iter().all(|member| !member.connected)
    }

    /// The rank that has gone, if one has: then there can be no checkpoint of the whole job any more.
    pub fn gone(&self) -> Option<String> {
        self.iter().find_map(|(rank, r)| match r.life {
            Life::Ended(status) => {
                Some(format!("{} has ended (status {status})", self.named(rank)))
            }
            Life::Lost => Some(format!("{} has died", self.named(rank))),
            _ => None,
        })
    }

    pub fn status(&self) -> Vec<RankStatus> {
        self.iter()
            .map(|(rank, r)| RankStatus {
                rank,
                host: r.hello.as_ref().map_or(String::new(), |h| h.host.clone()),
                pid: r.hello.as_ref().map_or(0, |h| h.pid),
                state: r.state().to_owned(),
                exit_status: match r.life {
                    Life::Ended(status) => Some(status),
                    _ => None,
                },
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use stillpoint_protocol::namespace::Namespace;

    use super::*;

    fn hello(rank: u32, size: u32, launch: &str) -> Hello {
        Hello {
            rank: Rank(rank),
            size,
            pid: 100 + rank,
            host: "node1".into(),
            namespace: Namespace::told_of(1, "", ""),
            launch: launch.into(),
            restarted_from: None,
            returns: false,
            late: false,
        }
    }

    #[test]
    fn only_a_rank_of_this_launch_is_taken_in_and_only_once() {
        let mut roster = Roster::new(2);
        assert!(roster.admit(hello(0, 2, "other"), "l").is_err());
        assert!(roster.admit(hello(0, 3, "l"), "l").is_err());
        assert!(roster.admit(hello(2, 2, "l"), "l").is_err());
        assert!(roster.admit(hello(1, 2, "l"), "l").is_ok());
        roster.set_life(Rank(1), Life::InMpi);
        assert!(roster.admit(hello(1, 2, "l"), "l").is_err());
        assert_eq!(roster.starting().collect::<Vec<_>>(), [Rank(0)]);
        assert_eq!(
            roster.named(Rank(1)).to_string(),
            "rank 1 (process 101 on node1)"
        );
    }

    #[test]
    fn a_rank_that_goes_without_a_word_is_lost() {
        let mut roster = Roster::new(2);
        roster.admit(hello(0, 2, "l"), "l").unwrap();
        roster.admit(hello(1, 2, "l"), "l").unwrap();
        roster.set_life(Rank(0), Life::Ended(0));
        roster.set_life(Rank(1), Life::InMpi);
        assert!(!roster.disconnect(Rank(0)));
        assert!(!roster.nobody_connected());
        assert!(roster.disconnect(Rank(1)));
        assert!(roster.nobody_connected());
    }

    #[test]
    fn a_process_that_does_not_use_mpi_may_become_or_start_another() {
        let mut roster = Roster::new(1);
        roster.admit(hello(0, 1, "l"), "l").unwrap();
        assert!(roster.admit(hello(0, 1, "l"), "l").is_ok());
        assert!(!roster.disconnect(Rank(0)));
        assert_eq!(roster.starting().collect::<Vec<_>>(), [Rank(0)]);
        assert!(roster.admit(hello(0, 1, "l"), "l").is_ok());
    }

    #[test]
    fn a_process_that_has_handed_over_does_not_take_that_back() {
        let mut roster = Roster::new(1);
        let script = hello(0, 1, "l");
        let program = Hello {
            pid: script.pid + 1,
            ..script.clone()
        };
        let back = |hello: &Hello| Hello {
            returns: true,
            late: false,
            ..hello.clone()
        };
        roster.admit(script.clone(), "l").unwrap();
        roster.admit(program.clone(), "l").unwrap();
        assert!(roster.admit(back(&script), "l").is_err());
        assert!(roster.admit(back(&program), "l").is_ok());
        assert!(!roster.disconnect(Rank(0)));
        assert!(roster.admit(back(&script), "l").is_ok(), "it has gone");
    }

    #[test]
    fn the_first_rank_of_a_host_keeps_the_table_for_all_of_them() {
        let mut roster = Roster::new(7);
        // The last two share a host, but do not see each other's processes.
        let places = [
            (0, "a", 1),
            (1, "b", 1),
            (2, "b", 1),
            (3, "c", 1),
            (4, "d", 1),
            (5, "d", 2),
        ];
        for (rank, host, namespace) in places {
            let host = host.to_owned();
            let hello = Hello {
                host,
                namespace: Namespace::told_of(namespace, "", ""),
                ..hello(rank, 7, "l")
            };
            roster.admit(hello, "l").unwrap();
        }
        let b = Dedup::Node { keeper: 101 };
        let alone = Dedup::Rank;
        assert_eq!(roster.nodes(), [alone, b, b, alone, alone, alone, alone]);
    }
}
