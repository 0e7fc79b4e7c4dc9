//! A process's place in its launch, as the launcher (`mpirun`, `mpiexec`, `srun`, none) reports it.

mod hydra;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use xxhash_rust::xxh3::xxh3_128;

use stillpoint_ids::Rank;
use stillpoint_refusals::Code;

use super::Failure;

/// A process's place in its launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchPosition {
    pub rank: Rank,
    pub size: u32,
    /// The same for all ranks of a launch, and for no other launch.
    pub launch: String,
    /// Whether all ranks are on this host.
    pub one_host: bool,
    /// The MPI whose launcher this is, if it is known.
    pub mpi: Option<&'static str>,
}

/// The key for the name of Hydra's launch. Hydra sets no such variable: [`LaunchPosition::here`] adds it after it has asked Hydra.
const KEYS: &str = "STILLPOINT_PMI_KEYS";
/// The time that other ranks of an unknown launch wait for rank 0's error before they report their own.
const HEAD_START: Duration = Duration::from_secs(2);

impl LaunchPosition {
    /// Reads the environment of this process. Without a launcher it is rank 0 of 1.
    pub fn here() -> Result<LaunchPosition, Failure> {
        let text = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let mut variables: BTreeMap<String, String> =
            std::env::vars_os().filter_map(text).collect();
        variables.remove(KEYS);
        if hydra::started(&variables) {
            let name = hydra::name(&variables).map_err(|error| {
                let text = format!("cannot get the name of this launch from the launcher: {error}");
                Failure::refuse_because(Code::NotSetUp, &error, text)
            })?;
            variables.extend(name.map(|name| (KEYS.to_owned(), name)));
        }
        LaunchPosition::read(&variables).map_err(|(rank, text)| {
            // Rank 0 says the same, and its launcher ends the others.
            if rank != Rank::FIRST {
                thread::sleep(HEAD_START);
            }
            Failure::refuse(Code::NotSetUp, Failure::FAILED, text)
        })
    }

    /// Reads the place from variables. The error is for people, with the rank that it concerns.
    fn read(variables: &BTreeMap<String, String>) -> Result<LaunchPosition, (Rank, String)> {
        let variable = |name: &str| variables.get(name).cloned();
        let number = |name: &str| variables.get(name)?.parse::<u32>().ok();
        let rank = |name: &str| number(name).map(Rank);
        if let (Some(rank), Some(size)) =
            (rank("OMPI_COMM_WORLD_RANK"), number("OMPI_COMM_WORLD_SIZE"))
        {
            // The transports' key is random in every launch; the job's number alone may be used again.
            let names = [
                "PMIX_NAMESPACE",
                "OMPI_MCA_ess_base_jobid",
                "OMPI_MCA_orte_precondition_transports",
                "OMPI_MCA_orte_hnp_uri",
            ];
            return LaunchPosition {
                rank,
                size,
                launch: launch_id(&variable, &names),
                one_host: number("OMPI_COMM_WORLD_LOCAL_SIZE") == Some(size),
                mpi: Some("openmpi"),
            }
            .checked();
        }
        if let (Some(rank), Some(size)) = (rank("SLURM_PROCID"), number("SLURM_NTASKS"))
            && variable("SLURM_STEP_ID").is_some()
            && variable("SLURM_LAUNCH_NODE_IPADDR").is_some()
            // Hydra starts its own processes by srun if it finds a job of Slurm.
            && !hydra::started(variables)
        {
            let names = [
                "SLURM_CLUSTER_NAME",
                "SLURM_JOB_ID",
                "SLURM_STEP_ID",
                "SLURM_LAUNCH_NODE_IPADDR",
                // A heterogeneous step has a port for each component, so there the job's restart count and the step's number identify the launch.
                match variable("SLURM_HET_SIZE") {
                    Some(_) => "SLURM_RESTART_COUNT",
                    None => "SLURM_SRUN_COMM_PORT",
                },
            ];
            let nodes = number("SLURM_STEP_NUM_NODES").or_else(|| number("SLURM_NNODES"));
            return LaunchPosition {
                rank,
                size: number("SLURM_STEP_NUM_TASKS").unwrap_or(size),
                launch: launch_id(&variable, &names),
                one_host: nodes == Some(1),
                mpi: None,
            }
            .checked();
        }
        if let (Some(rank), Some(size)) = (rank("PMI_RANK"), number("PMI_SIZE")) {
            let names = ["PMI_JOBID", "PMI_ID_JOB", "HYDRA_JOBID", "PMI_PORT"];
            let one_host = number("MPI_LOCALNRANKS") == Some(size);
            let launch = match variable(KEYS) {
                _ if names.iter().any(|name| variable(name).is_some()) => {
                    launch_id(&variable, &names)
                }
                Some(name) if hydra::is_drawn(&name) || !one_host => format!("hydra-{name}"),
                // All ranks of a host have the same parent: its proxy.
                name => format!(
                    "hydra-{}-{}-{}",
                    name.unwrap_or_default(),
                    std::os::unix::process::parent_id(),
                    boot_id()
                ),
            };
            return LaunchPosition {
                rank,
                size,
                launch,
                one_host,
                mpi: Some("mpich"),
            }
            .checked();
        }
        if let Some((name, rank)) = sign_of_a_rank(variables) {
            let text = format!(
                "{name} says that this is rank {rank} of a launch, but the number of ranks is unknown: start it with \
                 mpirun, mpiexec or srun, or unset {name} to start one rank by itself"
            );
            return Err((rank, text));
        }
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Ok(LaunchPosition {
            rank: Rank::FIRST,
            size: 1,
            launch: format!("single-{}-{}", process::id(), since.as_nanos()),
            one_host: true,
            mpi: None,
        })
    }

    fn checked(self) -> Result<LaunchPosition, (Rank, String)> {
        if self.rank.0 < self.size {
            return Ok(self);
        }
        let text = format!(
            "the launcher says that this is rank {} of {}: run it under mpirun or srun, or unset their variables",
            self.rank, self.size
        );
        Err((self.rank, text))
    }
}

/// Finds a variable in which an unknown launcher gives the process its rank, and the rank.
///
/// Launchers have many names for it, but all of them contain RANK: `PMIX_RANK`, `PALS_RANKID`, `FLUX_TASK_RANK`, `RANK`. Slurm sets its `SLURM_PROCID` in a
/// batch script too, which is not a rank. If the same launcher says that there is only one rank, the process may start.
fn sign_of_a_rank(variables: &BTreeMap<String, String>) -> Option<(&str, Rank)> {
    let alone = |stem: &str| {
        let sizes = ["SIZE", "WORLD_SIZE"].map(|size| format!("{stem}{size}"));
        sizes
            .iter()
            .any(|name| variables.get(name).is_some_and(|size| size == "1"))
    };
    variables.iter().find_map(|(name, value)| {
        let stem = ["RANK", "RANKID"]
            .iter()
            .find_map(|end| name.strip_suffix(end))?;
        let whole_word = stem.is_empty() || stem.ends_with('_');
        let rank = Rank(value.trim().parse().ok()?);
        (whole_word && !alone(stem)).then_some((name.as_str(), rank))
    })
}

fn launch_id(variable: &impl Fn(&str) -> Option<String>, names: &[&str]) -> String {
    let all: Vec<String> = names
        .iter()
        .map(|name| variable(name).unwrap_or_default())
        .collect();
    format!("{:032x}", xxh3_128(all.join("\n").as_bytes()))
}

/// An id that differs after every boot.
fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(variables: &[(&str, &str)]) -> Result<LaunchPosition, (Rank, String)> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        LaunchPosition::read(&variables.iter().map(owned).collect())
    }

    const OPEN_MPI: [(&str, &str); 5] = [
        ("OMPI_COMM_WORLD_RANK", "1"),
        ("OMPI_COMM_WORLD_SIZE", "4"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
        ("PMIX_NAMESPACE", "7"),
        ("OMPI_MCA_orte_precondition_transports", "ab-cd"),
    ];

    #[test]
    fn open_mpi_says_all() {
        let here = place(&OPEN_MPI).unwrap();
        assert_eq!((here.rank, here.size, here.one_host), (Rank(1), 4, true));
        let mut other = OPEN_MPI;
        other[4].1 = "ab-ce";
        assert_ne!(place(&other).unwrap().launch, here.launch);
        other = OPEN_MPI;
        other[0].1 = "2";
        assert_eq!(place(&other).unwrap().launch, here.launch);
        other[2].1 = "2";
        assert!(!place(&other).unwrap().one_host);
    }

    #[test]
    fn a_batch_script_is_not_a_step_of_its_job() {
        // Slurm sets these variables for the script too, which then calls stillpoint without srun.
        let script = [
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "8"),
            ("SLURM_JOB_ID", "5"),
        ];
        assert_eq!(place(&script).unwrap().size, 1);
        let step = [
            ("SLURM_PROCID", "3"),
            ("SLURM_NTASKS", "8"),
            ("SLURM_JOB_ID", "5"),
            ("SLURM_STEP_ID", "0"),
            ("SLURM_NNODES", "2"),
            ("SLURM_LAUNCH_NODE_IPADDR", "192.0.2.1"),
        ];
        let here = place(&step).unwrap();
        assert_eq!((here.rank, here.size, here.one_host), (Rank(3), 8, false));
    }

    #[test]
    fn components_of_a_heterogeneous_step_are_one_launch() {
        // Slurm 22.05 sets them so: only the port differs between the components.
        let rank = |rank: &'static str, port: &'static str, restarts: &'static str, het: bool| {
            let mut variables = vec![
                ("SLURM_PROCID", rank),
                ("SLURM_NTASKS", "2"),
                ("SLURM_JOB_ID", "24"),
                ("SLURM_STEP_ID", "0"),
                ("SLURM_LAUNCH_NODE_IPADDR", "192.0.2.1"),
                ("SLURM_SRUN_COMM_PORT", port),
                ("SLURM_RESTART_COUNT", restarts),
            ];
            variables.extend(het.then_some(("SLURM_HET_SIZE", "2")));
            place(&variables).unwrap().launch
        };
        assert_eq!(rank("0", "35793", "0", true), rank("1", "36945", "0", true));
        assert_ne!(rank("0", "35793", "0", true), rank("0", "35793", "1", true));
        assert_ne!(
            rank("0", "35793", "0", false),
            rank("0", "36945", "0", false)
        );
    }

    #[test]
    fn hydra_has_one_name_on_every_host_and_stands_before_the_slurm_that_it_runs_in() {
        let rank = |rank: &'static str, name: &'static str| {
            let variables = [
                ("PMI_RANK", rank),
                ("PMI_SIZE", "4"),
                ("MPI_LOCALNRANKS", "2"),
                (KEYS, name),
                ("SLURM_PROCID", "1"),
                ("SLURM_NTASKS", "2"),
                ("SLURM_JOB_ID", "5"),
                ("SLURM_STEP_ID", "0"),
                ("SLURM_LAUNCH_NODE_IPADDR", "192.0.2.1"),
            ];
            place(&variables).unwrap()
        };
        let (first, last) = (rank("0", "kvs_1_0_7_h"), rank("3", "kvs_1_0_7_h"));
        assert_eq!((last.rank, last.size, last.one_host), (Rank(3), 4, false));
        assert_eq!((last.mpi, &last.launch), (Some("mpich"), &first.launch));
        assert_ne!(rank("0", "kvs_1_0_8_h").launch, first.launch);
    }

    #[test]
    fn without_a_launcher_there_is_one_rank() {
        let here = place(&[]).unwrap();
        assert_eq!((here.rank, here.size, here.one_host), (Rank(0), 1, true));
    }

    #[test]
    fn a_rank_of_nobody_knows_how_many_is_refused_whoever_launched_it() {
        for name in ["PMIX_RANK", "PALS_RANKID", "FLUX_TASK_RANK", "RANK"] {
            for rank in ["0", "3"] {
                let (found, text) = place(&[(name, rank)]).unwrap_err();
                assert_eq!(found.to_string(), rank);
                assert!(text.contains(name) && text.contains("mpirun"), "{text}");
            }
        }
        // An incomplete answer of a launcher does not mean a launch of one rank either.
        assert!(place(&[("OMPI_COMM_WORLD_RANK", "0")]).is_err());
        assert!(place(&[("PMI_RANK", "0"), ("PMI_SIZE", "x")]).is_err());
    }

    #[test]
    fn what_is_no_rank_of_several_starts_alone() {
        for alone in [
            [("RANK", "0"), ("WORLD_SIZE", "1")],
            [("FLUX_TASK_RANK", "0"), ("FLUX_TASK_SIZE", "1")],
            [("PAGERANK", "0"), ("RANKING", "1")],
            [("RANK", "major"), ("SLURM_PROCID", "0")],
        ] {
            assert_eq!(place(&alone).unwrap().size, 1, "{alone:?}");
        }
    }

    #[test]
    fn a_rank_outside_the_launch_is_refused() {
        let wrong = [("OMPI_COMM_WORLD_RANK", "4"), ("OMPI_COMM_WORLD_SIZE", "4")];
        assert!(place(&wrong).is_err());
    }
}
