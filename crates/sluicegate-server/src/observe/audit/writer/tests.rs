use std::collections::{HashSet, VecDeque};

use sluicegate::{Limiter, Mode};

use super::*;
use crate::observe::audit::test_support::{NOON, limiter, note, queue};

/// A database with scripted answers; it succeeds when there are none.
#[derive(Clone, Debug, Default)]
struct Fake(Arc<parking_lot::Mutex<Answers>>);

#[derive(Debug, Default)]
struct Answers {
    /// Answers to the next writes; then they succeed.
    next: VecDeque<Answer>,
    /// All attempted writes with their times, in order.
    tried: Vec<(Instant, ViolationBatch)>,
    seen: HashSet<u64>,
    rows: usize,
    count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Unavailable,
    /// Written, but the answer is lost.
    WrittenButUnavailable,
    Refused,
    Never,
    /// Written, but after two seconds.
    Slow,
}

impl Sink for Fake {
    async fn write(&self, batch: &ViolationBatch) -> Result<(), DataError> {
        let answer = {
            let mut answers = self.0.lock();
            answers.tried.push((Instant::now(), batch.clone()));
            let answer = answers.next.pop_front();
            let is_written =
                matches!(answer, None | Some(Answer::WrittenButUnavailable | Answer::Slow));
            if is_written && answers.seen.insert(batch.sequence) {
                answers.rows += batch.rows.len();
                answers.count += batch.rows.iter().map(|row| row.count).sum::<u64>();
            }
            answer
        };
        match answer {
            None => Ok(()),
            Some(Answer::Refused) => Err(DataError::Unexpected("no".into())),
            Some(Answer::Never) => std::future::pending().await,
            Some(Answer::Slow) => {
                sleep(Duration::from_secs(2)).await;
                Ok(())
            }
            Some(_) => Err(DataError::Unavailable("locked".into())),
        }
    }
}

struct Bench {
    writer: Arc<Writer<Fake>>,
    queue: Arc<Queue>,
    metrics: AuditMetrics,
    fake: Fake,
    limiter: Limiter,
}

impl Bench {
    fn new(rows_per_second: usize, rows_max: usize, next: &[Answer]) -> Self {
        let (queue, metrics) = queue(rows_max);
        let fake = Fake::default();
        fake.0.lock().next.extend(next);
        let ours = (Arc::clone(&queue), fake.clone(), metrics.clone());
        let writer = Arc::new(Writer::new(ours.0, ours.1, ours.2, rows_per_second));
        Self { writer, queue, metrics, fake, limiter: limiter(&[Mode::Enforce]) }
    }

    /// Notes one violation of each of these users.
    fn note(&self, users: std::ops::Range<u32>) {
        for user in users {
            note(&self.queue, &self.limiter, &user.to_string(), NOON.plus_micros(user.into()));
        }
    }

    fn run(&self) -> tokio::task::JoinHandle<()> {
        let writer = Arc::clone(&self.writer);
        tokio::spawn(async move { writer.run().await })
    }

    /// Checks that everything noted is written, dropped or waiting, and that the database has what
    /// was counted as written.
    fn check(&self) {
        let figures = self.metrics.figures();
        assert_eq!(self.fake.0.lock().count, figures.written);
        assert_eq!(self.metrics.rows_written() as usize, self.fake.0.lock().rows);
        assert_eq!(figures.noted, figures.written + figures.dropped + figures.waiting());
    }

    fn rows(&self) -> usize {
        self.fake.0.lock().rows
    }
}

#[tokio::test(start_paused = true)]
async fn rows_are_written_at_the_pace_of_the_settings_oldest_first() {
    let bench = Bench::new(100, 10_000, &[]);
    bench.note(0..1000);
    bench.run();
    // One second's rows at once, and then the rate.
    let mut expected = 100;
    for _ in 0..8 {
        sleep(Duration::from_secs(1)).await;
        expected += 100;
        let rows = bench.rows();
        assert!((expected - 100..=expected).contains(&rows), "{rows} and not {expected}");
    }
    sleep(Duration::from_secs(3)).await;
    assert_eq!((bench.rows(), bench.queue.rows()), (1000, 0));
    let answers = bench.fake.0.lock();
    let written = answers.tried.iter().flat_map(|(_, batch)| &batch.rows);
    assert!(written.map(|row| row.requested_at).is_sorted());
    drop(answers);
    bench.check();
}

#[tokio::test(start_paused = true)]
async fn a_violation_is_written_within_a_second() {
    let bench = Bench::new(100, 10_000, &[]);
    bench.run();
    sleep(Duration::from_millis(1234)).await;
    let noted_at = Instant::now();
    bench.note(0..1);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.rows(), 1);
    assert!(bench.fake.0.lock().tried[0].0 - noted_at <= WRITE_EVERY);
    // More of the same minute is another row, which the database adds.
    bench.note(0..1);
    bench.note(0..1);
    sleep(Duration::from_secs(1)).await;
    assert_eq!((bench.rows(), bench.fake.0.lock().count), (2, 3));
    bench.check();
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_tried_again_as_it_was_until_it_is_written() {
    use Answer::{Unavailable, WrittenButUnavailable};
    let next = [Unavailable, WrittenButUnavailable, Unavailable, Unavailable, Unavailable];
    let bench = Bench::new(100, 50, &next);
    bench.note(0..10);
    let started = Instant::now();
    bench.run();
    sleep(Duration::from_millis(1)).await;
    // Meanwhile violations are noted, up to the maximum.
    bench.note(10..100);
    assert_eq!((bench.queue.rows(), bench.metrics.dropped_for(Dropped::Full)), (50, 50));
    sleep(Duration::from_secs(20)).await;
    let tried = bench.fake.0.lock().tried.clone();
    let (batches, times): (Vec<_>, Vec<_>) =
        tried.into_iter().map(|(at, batch)| (batch, at)).unzip();
    assert!(batches[..6].iter().all(|batch| *batch == batches[0]), "{batches:?}");
    assert_eq!(batches[6].sequence, batches[0].sequence + 1);
    // Delays grow, up to the maximum.
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits[..5].iter().all(|wait| *wait <= RETRY.longest), "{waits:?}");
    assert!(times[5] - started >= Duration::from_secs(2), "{waits:?}");
    assert_eq!((bench.rows(), bench.queue.rows()), (50, 0));
    assert_eq!(bench.metrics.errors.get(), 5);
    bench.check();
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_the_database_rejects_is_dropped_and_counted() {
    let bench = Bench::new(100, 1000, &[Answer::Refused]);
    bench.note(0..10);
    bench.run();
    sleep(Duration::from_millis(1)).await;
    assert_eq!((bench.metrics.dropped_for(Dropped::Refused), bench.queue.rows()), (10, 0));
    bench.note(10..20);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.rows(), 10);
    bench.check();
}

#[tokio::test(start_paused = true)]
async fn finish_writes_within_the_rate_limit_and_drops_the_rest() {
    let bench = Bench::new(100, 1000, &[]);
    let run = bench.run();
    sleep(Duration::from_millis(600)).await;
    bench.note(0..130);
    bench.writer.finish(Instant::now() + Duration::from_secs(1)).await;
    run.await.unwrap();
    assert_eq!((bench.rows(), bench.metrics.dropped_for(Dropped::Shutdown)), (100, 30));
    bench.note(0..1);
    assert_eq!((bench.metrics.dropped_for(Dropped::Shutdown), bench.queue.rows()), (31, 0));
    bench.check();
}

#[tokio::test(start_paused = true)]
async fn finish_ends_in_time_whatever_the_database_does() {
    for answer in [Answer::Never, Answer::Unavailable] {
        let bench = Bench::new(100, 1000, &[answer; 20]);
        bench.note(0..10);
        let run = bench.run();
        sleep(Duration::from_millis(100)).await;
        let deadline = Instant::now() + Duration::from_secs(1);
        bench.writer.finish(deadline).await;
        assert!(Instant::now() <= deadline + Duration::from_millis(1), "{answer:?}");
        run.await.unwrap();
        assert_eq!(bench.metrics.dropped_for(Dropped::Shutdown), 10);
        bench.check();
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_finish_interrupts_is_not_lost() {
    let bench = Bench::new(100, 1000, &[Answer::Never]);
    bench.note(0..10);
    let run = bench.run();
    sleep(Duration::from_millis(100)).await;
    bench.writer.finish(Instant::now() + Duration::from_secs(1)).await;
    run.await.unwrap();
    assert_eq!((bench.rows(), bench.metrics.figures().dropped), (10, 0));
    bench.check();
}

#[tokio::test(start_paused = true)]
async fn a_subject_is_dropped_also_from_the_pending_batch() {
    let bench = Bench::new(5, 1000, &[Answer::Unavailable; 3]);
    bench.note(0..10);
    let run = bench.run();
    sleep(Duration::from_millis(1)).await;
    // Users 0 to 4 are in the pending batch, the others in the queue.
    for user in ["2", "7"] {
        bench.writer.forget(|row| row.user_id.as_deref() == Some(user)).await;
    }
    assert_eq!((bench.metrics.dropped_for(Dropped::Deleted), bench.queue.rows()), (2, 8));
    sleep(Duration::from_secs(20)).await;
    let answers = bench.fake.0.lock().tried.clone();
    let written = answers.iter().skip(1).flat_map(|(_, batch)| &batch.rows);
    for row in written {
        assert!(!["2", "7"].contains(&row.user_id.as_deref().unwrap()), "{row:?}");
    }
    assert_eq!(bench.rows(), 8);
    bench.check();
    run.abort();
}

/// 50,000 denials a second, most of new subjects, while the database is slow, then unavailable,
/// then well: the rate and the queue stay within their limits, and every denial is accounted for.
#[tokio::test(start_paused = true)]
async fn a_storm_of_denials_is_held() {
    const PER_MS: u32 = 50;
    const SECONDS: u32 = 4;
    const ROWS_MAX: usize = 1000;
    let next =
        [Answer::Slow, Answer::Unavailable, Answer::Unavailable, Answer::WrittenButUnavailable];
    let bench = Bench::new(100, ROWS_MAX, &next);
    let started = Instant::now();
    bench.run();
    for millisecond in 0..SECONDS * 1000 {
        let first = millisecond * PER_MS;
        bench.note(first..first + PER_MS - 10);
        // Some users are denied again and again.
        bench.note(0..10);
        assert!(bench.queue.rows() <= ROWS_MAX);
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(bench.metrics.figures().noted, u64::from(PER_MS * 1000 * SECONDS));
    assert!(bench.metrics.dropped_for(Dropped::Full) > 0);
    while bench.queue.rows() > 0 {
        sleep(Duration::from_millis(100)).await;
        let elapsed = Instant::now() - started;
        // The rate, and one second's burst.
        assert!(bench.rows() as u64 <= 100 + 100 * (elapsed.as_millis() as u64).div_ceil(1000));
    }
    let figures = bench.metrics.figures();
    assert_eq!(figures.written + figures.dropped, figures.noted);
    bench.check();
}
