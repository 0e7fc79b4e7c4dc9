//! Measurements on a GeForce GTX 295: Tables I to III of Laosooksathit et al., "Two-Level Checkpoint/Restart Modeling for
//! GPGPU". Milliseconds, by array size (elements of each of three arrays), for one, four and eight streams.

use super::streamed::Sample;

/// Numbers of streams of the tables' columns; one is the paper's "non-streamed".
pub const STREAMS: [u32; 3] = [1, 4, 8];

/// Array sizes of the tables' rows: 2^10 to 2^24.
pub const ELEMENTS: [u64; 15] = {
    let mut sizes = [0; 15];
    let mut row = 0;
    while row < sizes.len() {
        sizes[row] = 1 << (10 + row);
        row += 1;
    }
    sizes
};

/// Table I: checkpoint overhead.
pub const CHECKPOINT: [[f64; 3]; 15] = [
    [5.116, 5.337, 5.812],
    [5.086, 5.555, 5.795],
    [5.098, 5.590, 5.924],
    [5.159, 5.600, 6.108],
    [5.239, 5.713, 5.940],
    [5.404, 5.829, 6.285],
    [5.679, 6.123, 6.640],
    [6.256, 6.586, 7.196],
    [7.390, 7.577, 7.770],
    [9.579, 9.396, 9.917],
    [14.475, 12.016, 14.171],
    [22.726, 17.568, 17.613],
    [41.075, 29.938, 27.930],
    [80.754, 54.034, 50.436],
    [147.704, 103.702, 99.220],
];

/// Table II: restart overhead.
pub const RESTART: [[f64; 3]; 15] = [
    [0.437, 1.248, 2.099],
    [0.490, 1.264, 2.160],
    [0.491, 1.241, 2.111],
    [0.502, 1.240, 1.923],
    [0.521, 1.223, 1.862],
    [0.577, 1.132, 2.088],
    [0.716, 1.141, 1.965],
    [0.975, 1.546, 2.451],
    [1.427, 1.763, 1.982],
    [2.403, 2.063, 2.622],
    [4.330, 2.620, 3.682],
    [8.140, 3.963, 3.931],
    [15.826, 6.160, 6.163],
    [31.178, 10.899, 9.322],
    [61.751, 20.537, 15.904],
];

/// Table III: wasted time, which is checkpoint, restart and computing again.
pub const WASTED: [[f64; 3]; 15] = [
    [5.665, 6.698, 8.025],
    [5.688, 6.931, 8.067],
    [5.701, 6.943, 8.147],
    [5.776, 6.954, 8.146],
    [5.936, 7.112, 7.978],
    [6.322, 7.302, 8.714],
    [6.964, 7.834, 9.175],
    [8.255, 9.156, 10.671],
    [10.803, 11.326, 11.738],
    [15.913, 15.389, 16.469],
    [26.573, 22.404, 25.620],
    [46.352, 37.016, 37.029],
    [87.749, 66.946, 64.941],
    [173.624, 126.625, 121.450],
    [332.888, 247.673, 238.557],
];

/// Converts a table to samples, in seconds.
pub fn samples(table: &[[f64; 3]; 15]) -> Vec<Sample> {
    let rows = ELEMENTS.iter().zip(table);
    let sample = |size: u64, (streams, time): (u32, f64)| Sample {
        size: size as f64,
        streams,
        seconds: time * 1e-3,
        slot: None,
    };
    rows.flat_map(|(&size, row)| {
        STREAMS
            .into_iter()
            .zip(*row)
            .map(move |cell| sample(size, cell))
    })
    .collect()
}

/// Returns Table III minus Tables I and II: the time to compute again, which is the same for every number of streams.
pub fn recomputing() -> Vec<Sample> {
    let mut rest = samples(&WASTED);
    for ((rest, checkpoint), restart) in rest
        .iter_mut()
        .zip(samples(&CHECKPOINT))
        .zip(samples(&RESTART))
    {
        rest.seconds -= checkpoint.seconds + restart.seconds;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_add_up_row_by_row() {
        // 2^14 to 2^24: computing again takes the same whatever the streams, to the tables' last digits.
        for row in recomputing().chunks(3) {
            let spread = row
                .iter()
                .map(|sample| (sample.seconds - row[0].seconds).abs())
                .fold(0.0, f64::max);
            assert!(spread < 0.1e-3, "{row:?}");
        }
    }
}
