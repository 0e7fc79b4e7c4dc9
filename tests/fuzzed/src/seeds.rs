//! The seeds of a fuzzer: for each target some small inputs of the kind that Stillpoint itself writes.

mod elf;
mod images;
mod messages;

pub use elf::greedy;
pub use images::image_file;

use stillpoint_image::Manifest;
use stillpoint_image::format::checksum;

use crate::delta::BORDER;

/// Returns the inputs of a target, each with a name.
pub fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let seeds: Vec<Vec<u8>> = match target {
        "blocks" => blocks(),
        "delta" => delta(),
        "handshake" => handshake(),
        "image" => image(),
        "job_file" => vec![
            JOB_FILE.into(),
            ENDED_JOB_FILE.into(),
            b"{\"format\":1}".into(),
        ],
        "launch" => vec![LAUNCH.into(), RESTART.into(), b"[]".into()],
        "manifest" => manifest(),
        "plans" => plans(),
        "program" => elf::programs(),
        "protocol" => messages::messages(),
        other => panic!("there is no target '{other}'"),
    };
    let named = (0..).zip(seeds);
    named
        .map(|(number, seed)| (format!("seed-{number:02}"), seed))
        .collect()
}

fn with(first: u8, bytes: &[u8]) -> Vec<u8> {
    [&[first], bytes].concat()
}

fn image() -> Vec<Vec<u8>> {
    let parts = images::in_parts().into_iter();
    let mut seeds: Vec<Vec<u8>> = parts.map(|parts| with(2, &parts.open())).collect();
    seeds.push(with(0, image_file()));
    seeds.push(with(1, image_file()));
    seeds.push(with(0, &image_file()[..100]));
    let parts = images::in_parts().into_iter().map(images::sharing);
    seeds.extend(parts.map(|parts| with(2, &parts.open())));
    seeds.push(with(2, &images::scattered().open()));
    seeds.push(with(2, &images::of_gpus().open()));
    seeds
}

fn delta() -> Vec<Vec<u8>> {
    let epochs = images::epochs();
    let joined = |choices: &[u8], count: usize| {
        let mut seed = choices.to_vec();
        for parts in &epochs[..count] {
            seed.extend_from_slice(BORDER);
            seed.extend(parts.open());
        }
        seed
    };
    // This input needs an epoch that does not exist.
    let alone = [&[0][..], BORDER, &epochs[1].open()].concat();
    let sharing = images::sharing(epochs[0].clone());
    let sharing = [&[4][..], BORDER, &sharing.open()].concat();
    vec![
        alone,
        joined(&[2, 9], 1),
        joined(&[16, 8], 2),
        joined(&[20, 40, 3], 3),
        joined(&[4], 3),
        joined(&[1, 5], 3),
        sharing,
    ]
}

fn handshake() -> Vec<Vec<u8>> {
    let mut hello = b"\0STILLPT\x02\x01\0\x01\0\x01".to_vec();
    hello.resize(62, 7);
    let mut answer = vec![1, 1];
    answer.resize(56, 7);
    vec![
        hello,
        answer,
        vec![2; 17],
        vec![3, 7, 0],
        vec![3, 200, 0, 50, 1],
        vec![3, 0, 1, 30, 255],
    ]
}

fn manifest() -> Vec<Vec<u8>> {
    let (bytes, digest) = (image_file().len(), images::digest());
    let text = format!(
        "{{\"job\":\"job\",\"name\":\"melt\",\"epoch\":3,\"committed\":1,\"command\":[\"app\"],\"mpi\":\"openmpi\",\"gate_version\":7,\"stillpoint\":\"0.1.0\",\
         \"compression\":\"lz4\",\"needs\":[1,2],\"ranks\":[{{\"rank\":0,\"file\":\"rank-000000.img\",\"bytes\":1,\"digest\":\"0f\",\"hostname\":\"a\"}},\
         {{\"rank\":1,\"file\":\"image\",\"bytes\":{bytes},\"digest\":\"{digest:032x}\",\"hostname\":\"b\"}}]}}"
    );
    let none = serde_json::to_vec(&Manifest::default()).expect("JSON");
    let first = format!(
        "stillpoint-manifest 1 {:016x} {}\n",
        checksum(&none),
        none.len()
    );
    vec![
        with(1, text.as_bytes()),
        with(0, &[first.as_bytes(), &none].concat()),
        with(0, b"stillpoint-manifest 2 0 0\n"),
        with(1, b"{}"),
    ]
}

fn blocks() -> Vec<Vec<u8>> {
    let places =
        b"[{\"host\":\"here\",\"directory\":\"/f\"},{\"host\":\"there\",\"directory\":\"/g\"}]";
    let length = image_file().len() as u32;
    let record = |offset: u32, bytes: u32, place: u32, copy: u32| {
        let words = [offset, 0, 0, 0, bytes, place, copy, 0];
        words.map(u32::to_le_bytes).concat()
    };
    let table = |records: &[Vec<u8>]| {
        let mut header = b"STILLBLK\x01\0\0\0".to_vec();
        header.resize(40, 0);
        [&header, &places[..], &records.concat()].concat()
    };
    let several = [
        record(0, 100, 1, 0),
        record(100, 0, 0, 0),
        record(100, 900, 2, 1),
        record(1000, length - 1000, 0, 0),
    ];
    vec![
        with(15, &table(&several)),
        with(15, &table(&[record(0, length, 1, 2)])),
        with(7, &table(&several)),
        with(15, &table(&[record(0, 4 << 20, 1, 0), record(1, 2, 3, 4)])),
        with(0, &table(&[])),
    ]
}

fn plans() -> Vec<Vec<u8>> {
    let topology = b"name = \"n\"\n[[process]]\nname = \"G0\"\nsize = \"80 MB\"\nfree = \"60 MB\"\n[[process]]\nname = \"G1\"\nsize = 1\nfree = 2\n\
        [[tier]]\nname = \"S\"\n[[switch]]\nname = \"x\"\nbandwidth = \"1GB/s\"\n[[link]]\nfrom = \"G0\"\nto = \"x\"\nbandwidth = \"12GB/s\"\nboth = true\n\
        [[link]]\nfrom = \"x\"\nto = \"S\"\nbandwidth = 5\n";
    vec![
        with(0, topology),
        with(0, b"[[process]]\nname = \"a\"\n"),
        with(
            1,
            b"# from node 3\nG0,G1\n80 MB,128M # first\n1,2e3\n4000PB,4000PB\n",
        ),
        with(
            2,
            b"256 MB,4,31ms\n1k,1,2s\n1M,2,3s\n1G,8,1m\n2G,9,2h # x\n",
        ),
        with(3, b"1.5 GiB"),
        with(3, b"10 Gbit/s"),
        with(3, b"5.5ms"),
        with(3, b"-1"),
        with(4, RECORD.as_bytes()),
    ]
}

const RECORD: &str = "{\"gpus\":[{\"uuid\":\"GPU-1\",\"driver\":\"550\",\"copied\":{\"own\":[],\"to_host\":[\
    {\"epoch\":0,\"size\":4e6,\"streams\":1,\"seconds\":1e-3,\"slot\":4e6,\"predicted\":null},\
    {\"epoch\":0,\"size\":4e6,\"streams\":4,\"seconds\":2e-3,\"predicted\":1e-3},\
    {\"epoch\":0,\"size\":4e8,\"streams\":1,\"seconds\":3e-2,\"slot\":4e6,\"predicted\":null},\
    {\"epoch\":7,\"size\":4e8,\"streams\":4,\"seconds\":2e-2,\"slot\":1e6,\"predicted\":0}]}}]}";

const JOB_FILE: &str = "{\"format\":1,\"job\":\"j\",\"launch\":\"l\",\"name\":\"n\",\"state\":\"running\",\"addresses\":[\"127.0.0.1:1\"],\
    \"key\":\"5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a\",\"silence\":30,\"coordinator\":{\"host\":\"h\",\"pid\":7,\"start_time\":9},\
    \"ranks\":2,\"processes\":[{\"host\":\"h\",\"pid\":8,\"start_time\":0}],\"mpi\":\"openmpi\",\"command\":[\"a b\"],\"working_directory\":\"/\",\
    \"restarted_from\":2,\"recovers\":4,\"suspended_by\":{\"by\":\"root\",\"reason\":\"r\"},\"epoch\":3,\"directory\":\"/d\",\"inode\":5,\"predecessors\":1,\"started\":1}";

const ENDED_JOB_FILE: &str = "{\"format\":1,\"job\":\"j\",\"launch\":\"l\",\"name\":\"n\",\"state\":\"failed\",\"reason\":\"r\",\"exit_status\":3,\"addresses\":[],\
    \"key\":\"5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a\",\"coordinator\":{\"host\":\"\",\"pid\":0,\"start_time\":0},\
    \"ranks\":1,\"mpi\":\"\",\"command\":[],\"working_directory\":\"\",\"started\":0,\"ended\":2}";

const LAUNCH: &str = "{\"directory\":\"/a b/d\",\"job\":\"1\",\"launch\":\"2\",\"name\":\"melt\",\"rank\":3,\"size\":4,\"mpi\":\"openmpi\",\"library\":\"openmpi\",\
    \"upper_library\":\"/lib/u.so\",\"command\":[\"lmp\"],\"restart\":null,\"suspend_signal\":10,\"suspend_on_term\":true}";

const RESTART: &str = "{\"directory\":\"/d\",\"job\":\"1\",\"launch\":\"2\",\"name\":\"n\",\"rank\":0,\"size\":1,\"mpi\":\"openmpi\",\"library\":\"openmpi\",\"upper_library\":\"/u\",\
    \"command\":[],\"restart\":{\"epoch\":5,\"directory\":\"/d/e\",\"image\":\"/d/e/r\",\"fetched\":767,\"lazy\":true},\"suspend_signal\":-1,\
    \"suspend_on_term\":false,\"suspended_status\":75,\"two_phase\":true,\"stillpoint\":\"/s\",\"tiers\":{\"fast\":\"/f\",\"capacity\":7,\
    \"slow_capacity\":null,\"fast_limit\":null,\"slow_limit\":3,\"peer_limit\":null},\"mapped_files\":\"Keep\",\"begun\":1790000000000000000}";
