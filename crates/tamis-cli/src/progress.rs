//! A bar on standard error while keys are read, where that is a terminal.

use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use tamis::Config;

/// Shows how far the work is, at which rate it goes, and how long it will take.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar over so many bytes, or a count of them where there is no end in sight; nothing where
    /// there is no terminal.
    pub(crate) fn over(bytes: Option<u64>) -> Progress {
        let (bar, look) = match bytes {
            Some(bytes) => (
                ProgressBar::new(bytes),
                "{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
            ),
            None => (
                ProgressBar::new_spinner(),
                "{spinner} {bytes}, {bytes_per_sec}",
            ),
        };
        // Cleared also where an error ends it, so that the error stands on a line of its own.
        let bar = bar.with_finish(ProgressFinish::AndClear);
        if let Ok(style) = ProgressStyle::with_template(look) {
            bar.set_style(style);
        }
        Progress { bar }
    }

    /// So many more bytes were read.
    pub(crate) fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    /// So many bytes of all were read.
    pub(crate) fn at(&self, progress: tamis::Progress) {
        self.bar.set_length(progress.total);
        self.bar.set_position(progress.done);
    }

    /// Another part of the work begins, which cannot be measured.
    pub(crate) fn stage(&self, name: &'static str) {
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, {elapsed}") {
            self.bar.set_style(style);
        }
        self.bar.set_message(name);
        // It moves by a thread of its own, unless the system gives none.
        if !self.bar.is_hidden() && thread::Builder::new().spawn(|| ()).is_ok() {
            self.bar.enable_steady_tick(Duration::from_millis(200));
        }
    }

    /// The filter is built: measured where its kind tells how far it is.
    pub(crate) fn building(&self, config: &Config) -> Config {
        self.stage("building");
        let bar = self.bar.clone();
        config.clone().progress(move |progress| {
            // One that is told only at the end is no news.
            if 0 < progress.done && progress.done < progress.total {
                let look = "{wide_bar} {msg}, {percent} %, {elapsed}";
                if let Ok(style) = ProgressStyle::with_template(look) {
                    bar.set_style(style);
                }
                bar.set_length(progress.total);
                bar.set_position(progress.done);
            }
        })
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_build_moves_the_bar() {
        let progress = Progress::over(Some(1000));
        let config = progress.building(&Config::default().set("shards", 4));
        let mut hashes: Vec<u64> = (1..=40_000u64)
            .map(|i| tamis::Hashing::default().hash(&i))
            .collect();
        let kind = tamis::kind("binary_fuse8").unwrap();
        kind.build(&config, &mut hashes).unwrap();
        assert_eq!(progress.bar.length(), Some(40_000));
        let position = progress.bar.position();
        assert!((20_000..40_000).contains(&position), "{position}");
    }
}
