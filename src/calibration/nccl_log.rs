//! What nccl-tests prints, read as it is found: with the prefixes that launchers put before each line, without the marks
//! that documents lose, in the columns of all versions.

use std::collections::BTreeSet;

use crate::collectives::Collective;
use crate::units::{Bytes, Seconds};

/// One size of a log, out of place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The size column.
    pub payload: Bytes,
    /// The time column.
    pub time: Seconds,
    /// Bus bandwidth over algorithm bandwidth, where the columns have digits enough to tell.
    pub bus_factor: Option<f64>,
}

/// Least algorithm bandwidth, in GB/s, whose two decimals tell bus factors of different groups apart.
const TELLING: f64 = 5.0;
/// Shortest and longest time, in microseconds, that a collective can take.
const TIMES: [f64; 2] = [0.1, 86_400e6];
/// How far a printed bus factor may be from the true one, for its decimals.
const ROUNDING: f64 = 0.005;

/// A log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NcclLog {
    /// The collective, where the log says (from version 2.17 on).
    pub collective: Option<Collective>,
    /// Ranks, where it lists them.
    pub ranks: Option<u32>,
    /// Hosts that they are on, where it lists them.
    pub hosts: Option<u32>,
    /// GPUs that one process drives, where it says: threads times GPUs of each.
    pub gpus_per_process: Option<u32>,
    /// Sizes and times; sizes of nothing and repeated prints of a size are left out.
    pub points: Vec<Point>,
}

impl NcclLog {
    /// Whether the bandwidths that the log prints are those of a collective of so many ranks.
    pub fn agrees(&self, kind: Collective, ranks: u32) -> bool {
        let factor = kind.bus_factor(ranks);
        self.points.iter().filter_map(|point| point.bus_factor).all(|printed| (printed - factor).abs() < ROUNDING)
    }
}

/// Why a text is no log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// No line holds a size and a time.
    #[error("no line with a size and a time of nccl-tests")]
    Empty,
    /// The results were wrong.
    #[error("line {line}: {wrong} wrong elements, so the run says nothing")]
    Wrong {
        /// The line, counted from 1.
        line: usize,
        /// How many.
        wrong: String,
    },
    /// A time that no collective takes.
    #[error("line {line}: {time} us is no time that a collective takes, a tenth of a microsecond to a day")]
    Time {
        /// The line, counted from 1.
        line: usize,
        /// As it stands there.
        time: String,
    },
}

/// Reads what nccl-tests printed.
///
/// # Errors
/// Where the text has no results, or they were wrong.
pub fn read_nccl_log(text: &str) -> Result<NcclLog, LogError> {
    let mut log = NcclLog::default();
    let mut hosts = BTreeSet::new();
    let mut time_column = 5;
    for (index, line) in text.lines().enumerate() {
        let line = bare(line);
        if let Some(test) = line.split("Collective test starting:").nth(1) {
            log.collective = collective_of(test.trim());
        } else if let Some((rank, host)) = rank_line(line) {
            // Documents cut the list to the first and the last rank of each host.
            log.ranks = log.ranks.max(Some(rank + 1));
            hosts.insert(host.to_owned());
        } else if line.contains("minBytes") {
            let threads = after(line, "nThread").unwrap_or(1);
            log.gpus_per_process = after(line, "nGpus").map(|gpus| gpus.saturating_mul(threads));
        } else if let Some(column) = heading(line) {
            time_column = column;
        } else if let Some(point) = result(line, time_column, index + 1)?
            && log.points.iter().all(|other| other.payload != point.payload)
        {
            log.points.push(point);
        }
    }
    log.hosts = u32::try_from(hosts.len()).ok().filter(|hosts| *hosts > 0);
    if log.points.is_empty() { Err(LogError::Empty) } else { Ok(log) }
}

/// A line without what launchers put before it (`0: `, `[1,0]<stdout>:`) and without nccl-tests' own mark.
fn bare(line: &str) -> &str {
    let line = line.split_once("<stdout>:").map_or(line, |(_, rest)| rest).trim_start();
    let line = match line.split_once(':') {
        Some((rank, rest)) if !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => line,
    };
    line.trim_start().trim_start_matches('#').trim()
}

/// The collective of a test's name, such as `all_reduce_perf`.
fn collective_of(test: &str) -> Option<Collective> {
    let word = test.strip_suffix("_perf").unwrap_or(test).replace('_', "");
    Collective::ALL.iter().copied().find(|kind| kind.word().replace('_', "") == word)
}

/// Rank and host of a line such as `Rank  0 Group  0 Pid 25 on node000 device  0 [0x8d] NVIDIA H200`.
fn rank_line(line: &str) -> Option<(u32, &str)> {
    let mut words = line.split_whitespace();
    if words.next() != Some("Rank") {
        return None;
    }
    let rank: u32 = words.next()?.parse().ok()?;
    let host = words.skip_while(|word| *word != "on").nth(1)?;
    (rank < u32::MAX).then_some((rank, host))
}

/// The number that follows a word.
fn after(line: &str, word: &str) -> Option<u32> {
    line.split_whitespace().skip_while(|found| *found != word).nth(1)?.parse().ok()
}

/// Column of the first `time` in a line of headings.
fn heading(line: &str) -> Option<usize> {
    let words: Vec<&str> = line.split_whitespace().collect();
    (words.first() == Some(&"size")).then(|| words.iter().position(|word| *word == "time"))?
}

/// A line of results; none where it is something else, or moves nothing.
fn result(line: &str, time_column: usize, number: usize) -> Result<Option<Point>, LogError> {
    let words: Vec<&str> = line.split_whitespace().collect();
    // Size and count are whole numbers, the type a word.
    let (Some(Ok(bytes)), Some(Ok(_))) =
        (words.first().map(|word| word.parse::<u64>()), words.get(1).map(|word| word.parse::<u64>()))
    else {
        return Ok(None);
    };
    let Some(Ok(time)) = words.get(time_column).map(|word| word.parse::<f64>()) else { return Ok(None) };
    // After time and two bandwidths: a count of wrong elements, or an error of old versions, which is a fraction.
    let wrong = words.get(time_column + 3).copied().unwrap_or("N/A");
    if wrong.parse::<u64>().is_ok_and(|wrong| wrong > 0) {
        return Err(LogError::Wrong { line: number, wrong: wrong.to_owned() });
    }
    let bandwidth = |after: usize| words.get(time_column + after).and_then(|word| word.parse::<f64>().ok());
    let bus_factor = match (bandwidth(1), bandwidth(2)) {
        (Some(algorithm), Some(bus)) if algorithm >= TELLING => Some(bus / algorithm),
        _ => None,
    };
    // Sizes of nothing are printed with whatever the clock saw.
    if bytes > 0 && !(TIMES[0]..=TIMES[1]).contains(&time) {
        return Err(LogError::Time { line: number, time: words[time_column].to_owned() });
    }
    let (payload, time) = (Bytes::new(bytes as f64), Seconds::new(time * 1e-6));
    Ok((bytes > 0).then_some(Point { payload, time, bus_factor }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(log: &NcclLog) -> Vec<(f64, f64)> {
        let of = |point: &Point| (point.payload / Bytes::new(1.0), (point.time / Seconds::new(1e-9)).round() / 1e3);
        log.points.iter().map(of).collect()
    }

    #[test]
    fn a_log_of_two_nodes() {
        let text = "\
# nccl-tests version 2.17.9 nccl-headers=22903 nccl-library=22903
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1
#
# Using devices
#  Rank  0 Group  0 Pid  11 on a1 device  0 [0x1b] NVIDIA H100 80GB HBM3
#  Rank 15 Group  0 Pid  91 on a2 device  7 [0xe5] NVIDIA H100 80GB HBM3
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1   120.50    8.70   16.32       0   119.90    8.75   16.40       0
     2097152        524288     float     sum      -1    131.2   15.98   29.97       0    130.0   16.13   30.25       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 23.2
";
        let log = read_nccl_log(text).unwrap();
        assert_eq!(log.collective, Some(Collective::AllReduce));
        assert_eq!((log.ranks, log.hosts, log.gpus_per_process), (Some(16), Some(2), Some(1)));
        assert_eq!(sizes(&log), [(1_048_576.0, 120.5), (2_097_152.0, 131.2)]);
        // 16.32 / 8.70 and 29.97 / 15.98 are 1.875 within their decimals: 2 x 15/16, not 2 x 7/8, nor 15/16.
        assert!(log.agrees(Collective::AllReduce, 16));
        assert!(!log.agrees(Collective::AllReduce, 8) && !log.agrees(Collective::AllGather, 16));
    }

    #[test]
    fn launchers_and_versions_write_it_their_way() {
        // Marks of srun and mpirun, lost marks, N/A where nothing was checked, empty sizes, old columns and errors.
        for (text, points) in [
            ("0:    64   1   float   none   0   88.38   0.00   0.00   0   89.81  0.00  0.00  0", vec![(64.0, 88.38)]),
            ("[1,0]<stdout>:  8  2  float  sum  -1  12.90  0.00  0.00  0  12.87  0.00  0.00  0", vec![(8.0, 12.9)]),
            ("8388608 131072 float none -1 166.6 50.34 47.19 N/A 164.1 51.11 47.92 N/A", vec![(8_388_608.0, 166.6)]),
            (
                "# size count type time algbw busbw error\n0 0 float 0.15 0.00 0.00 0\n1024 256 float 20.5 0.05 0.05 4e-07",
                vec![(1_024.0, 20.5)],
            ),
            (
                "# nThread 2 nGpus 4 minBytes 8\n16 4 float sum -1 30.0 0 0 0\n16 4 float sum -1 31.0 0 0 0",
                vec![(16.0, 30.0)],
            ),
        ] {
            assert_eq!(sizes(&read_nccl_log(text).unwrap()), points, "{text}");
        }
        let threads = "# nThread 2 nGpus 4 minBytes 8\n16 4 float sum -1 30.0 0 0 0";
        assert_eq!(read_nccl_log(threads).unwrap().gpus_per_process, Some(8));
    }

    #[test]
    fn what_is_no_log_or_went_wrong_is_refused() {
        assert_eq!(read_nccl_log("hello\n1 2\n"), Err(LogError::Empty));
        let wrong = "# size count type redop root time algbw busbw #wrong\n8 2 float sum -1 12.9 0 0 3 12 0 0 0";
        let never = |time: &str| read_nccl_log(&format!("8 2 float sum -1 {time} 0 0 0"));
        for time in ["1e-300", "NaN", "inf", "-5"] {
            assert_eq!(never(time), Err(LogError::Time { line: 1, time: time.to_owned() }));
        }
        assert_eq!(read_nccl_log(wrong), Err(LogError::Wrong { line: 2, wrong: "3".to_owned() }));
    }
}
