//! `spotcheck review` on full disks.

use std::process::Command;

use crate::review::Bench;
use crate::support::{spotcheck, stderr};

impl Bench {
    /// Imports `v.csv` while no file may grow beyond a limit, in kilobytes.
    #[cfg(target_os = "linux")]
    fn import_on_a_full_disk(&self, project: &str, limit: u32) -> std::process::Output {
        let import = spotcheck(&["review", "import", project, "v.csv"]);
        let mut limited = Command::new("sh");
        limited.args(["-c", &format!(r#"trap "" XFSZ; exec prlimit --fsize={limit}000:unlimited "$@""#), "sh"]);
        limited.arg(import.get_program()).args(import.get_args()).current_dir(self.path(""));
        for (name, value) in import.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        limited.output().unwrap()
    }
}

#[cfg(target_os = "linux")]
#[test]
fn import_on_a_full_disk_saves_all_or_nothing() {
    let bench = Bench::new();
    bench.project("p.spotcheck");
    let class = "x".repeat(2000);
    let rows = (0..250).map(|image| format!("{image:03}.png,,wrong,{class}{image}\n"));
    std::fs::write(bench.path("v.csv"), format!("image,box,verdict,right_class\n{}", rows.collect::<String>()))
        .unwrap();
    let failed = bench.import_on_a_full_disk("p.spotcheck", 400);
    let text = stderr(&failed);
    assert_eq!(failed.status.code(), Some(1), "{text}");
    assert!(text.contains("none of them") && !text.contains("yet"), "{text}");
    bench.reviewed("export", &["p.spotcheck", "--out", "w.csv"]);
    assert_eq!(bench.rows("w.csv").len(), 0);
    bench.reviewed("import", &["p.spotcheck", "v.csv"]);
    bench.reviewed("export", &["p.spotcheck", "--out", "w.csv", "--force"]);
    assert_eq!(bench.rows("w.csv").len(), 250);
}
