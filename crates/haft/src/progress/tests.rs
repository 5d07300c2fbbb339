//! What readers of the live channel receive: everything once and in order, or the amount that was left out.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::held::{MAX_HELD, MAX_PIECES, MAX_STREAM};
use super::hub::{Hub, Listener};
use super::*;
use crate::bounds::ByteBudget;

/// Length of a piece that is not batched with others.
const FULL_PIECE: usize = 64 << 10;

fn pace(milliseconds: u64, bytes: usize) -> Pace {
    Pace {
        gather: Duration::from_millis(milliseconds),
        bytes,
    }
}

/// Returns a call's handle on the hub, and the guard that closes its streams.
fn watched(hub: &Arc<Hub>, run: &str, call: &str) -> (Progress, LiveOutputGuard) {
    let sink = Arc::clone(hub) as Arc<dyn ProgressSink>;
    let live = LiveOutput::new(RunId::new(run), CallId::new(call), sink);
    let progress = Progress::new(Some(Arc::clone(&live)), Pace::default());
    (progress, LiveOutputGuard(Some(live)))
}

fn rest(listener: &mut Listener) -> Vec<ProgressEvent> {
    std::iter::from_fn(|| listener.rest()).collect()
}

/// Returns the text of a stream, and whether it was closed, once and last.
fn heard(events: &[ProgressEvent], call: &str, stream: ProgressStream) -> (String, bool) {
    let mine = |e: &&ProgressEvent| e.call.as_str() == call && e.stream == stream;
    let mine: Vec<_> = events.iter().filter(mine).collect();
    let closed = mine.iter().filter(|e| e.closed).count();
    assert!(closed <= 1, "closed {closed} times");
    assert!(
        closed == 0 || mine.last().unwrap().closed,
        "something after the end"
    );
    (mine.iter().map(|e| &*e.text).collect(), closed == 1)
}

#[test]
fn an_event_is_serialised_as_the_contract_has_it() {
    let event = ProgressEvent {
        run: RunId::new("r"),
        call: CallId::new("c"),
        text: "hä".into(),
        bytes: None,
        stream: ProgressStream::Stderr,
        offset: 7,
        closed: false,
        at: 1_500_000_000,
    };
    let expect = json!({
        "type": "tool_progress", "run": "r", "tool_call_id": "c", "text": "hä", "stream": "stderr", "closed": false,
        "ts": "1970-01-01T00:00:01.500Z", "offset": 7
    });
    assert_eq!(serde_json::to_value(&event).unwrap(), expect);
    let mut written = Vec::new();
    event.write_json(&mut written);
    assert_eq!(
        String::from_utf8(written).unwrap(),
        serde_json::to_string(&event).unwrap()
    );
}

#[tokio::test(start_paused = true)]
async fn pieces_are_gathered_by_time_or_by_size_whichever_comes_first() {
    // pace, pieces 10 ms apart → texts
    for (pace, pieces, expect) in [
        (pace(50, 100), &["a", "b", "c"][..], &["abc"][..]),
        (pace(15, 100), &["a", "b", "c"], &["ab", "c"]),
        (pace(50, 2), &["a", "b", "c"], &["ab", "c"]),
        (pace(0, 100), &["a", "b"], &["a", "b"]),
        (pace(50, 2), &["abcd", "e"], &["abcd", "e"]),
    ] {
        let hub = Hub::new(pace);
        let mut listener = hub.listen(None);
        let (progress, end) = watched(&hub, "r", "c");
        let pieces = pieces.iter();
        let sending = tokio::spawn(async move {
            for piece in pieces {
                progress.send(ProgressStream::Stdout, *piece);
                // slow on purpose: the clock is paused, and jumps.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            // slow on purpose: the clock is paused, and jumps.
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(end);
        });
        let mut texts = Vec::new();
        loop {
            let event = listener.next().await;
            if event.closed {
                break;
            }
            texts.push(event.text);
        }
        sending.await.unwrap();
        assert!(
            texts
                .iter()
                .map(|text: &Arc<str>| &**text)
                .eq(expect.iter().copied()),
            "{pace:?}: {texts:?}"
        );
    }
}

#[tokio::test]
async fn every_stream_is_closed_once_however_the_call_ends() {
    let hub = Hub::new(Pace::default());
    let mut listener = hub.listen(None);
    let (progress, end) = watched(&hub, "r", "c");
    progress.send(ProgressStream::Stdout, "out");
    progress.send(ProgressStream::Stderr, "err");
    progress.info("words");
    progress.close(ProgressStream::Stdout);
    progress.close(ProgressStream::Stdout);
    progress.send(ProgressStream::Stdout, "late");
    drop(end);
    progress.send(ProgressStream::Stderr, "later");
    progress.close(ProgressStream::Info);
    let events = rest(&mut listener);
    for (stream, text) in [
        (ProgressStream::Stdout, "out"),
        (ProgressStream::Stderr, "err"),
        (ProgressStream::Info, "words\n"),
    ] {
        assert_eq!(heard(&events, "c", stream), (text.to_owned(), true));
    }
}

#[test]
fn a_reader_hears_its_run_alone_and_from_when_it_began() {
    let hub = Hub::new(Pace::default());
    let (one, _one_end) = watched(&hub, "one", "c");
    let (two, _two_end) = watched(&hub, "two", "c");
    one.send(ProgressStream::Stdout, "früh ");
    let mut of_one = hub.listen(Some(RunId::new("one")));
    let mut of_all = hub.listen(None);
    one.send(ProgressStream::Stdout, "1");
    two.send(ProgressStream::Stdout, "2");
    let mine = rest(&mut of_one);
    assert_eq!(mine.len(), 1);
    assert_eq!((&*mine[0].text, mine[0].offset), ("1", 6));
    assert_eq!(rest(&mut of_all).len(), 2);
}

#[test]
fn a_slow_reader_gets_longer_texts_and_is_told_how_much_it_missed() {
    let hub = Hub::new(pace(50, 16));
    let mut slow = hub.listen(None);
    let mut quick = hub.listen(None);
    let (progress, end) = watched(&hub, "r", "c");
    let piece = "é".repeat(500);
    let mut sent = 0_u64;
    let mut whole = 0;
    while sent < 2 * MAX_STREAM as u64 {
        progress.send(ProgressStream::Stdout, piece.as_str());
        sent += piece.len() as u64;
        whole += rest(&mut quick).iter().map(|e| e.text.len()).sum::<usize>();
    }
    let late = rest(&mut slow);
    assert_eq!(whole as u64, sent, "a quick reader missed something");
    let (told, texts) = late.split_last().unwrap();
    let text: String = texts.iter().map(|event| &*event.text).collect();
    assert!(text.len() <= MAX_STREAM && text.chars().all(|c| c == 'é'));
    assert!(texts.len() < 300, "{} events", texts.len());
    let lost = sent - text.len() as u64;
    assert_eq!(told.stream, ProgressStream::Info);
    assert!(
        told.text.contains(&format!("{lost} bytes of stdout")),
        "{}",
        told.text
    );
    // The stream continues after the gap, and its end is sent once.
    progress.send(ProgressStream::Stdout, "on");
    drop(end);
    let events = rest(&mut slow);
    assert_eq!(
        heard(&events, "c", ProgressStream::Stdout),
        ("on".to_owned(), true)
    );
    assert_eq!(events[0].offset, sent);
}

#[test]
fn the_end_of_a_stream_is_told_after_what_was_left_out_of_it() {
    let hub = Hub::new(pace(50, 16));
    let mut slow = hub.listen(None);
    let (progress, end) = watched(&hub, "r", "c");
    progress.info("first");
    progress.send(ProgressStream::Stdout, "x".repeat(MAX_STREAM + 5));
    drop(end);
    let events = rest(&mut slow);
    let short = |e: &ProgressEvent| (e.stream, e.offset, e.text.len().min(99), e.closed);
    let full = MAX_STREAM as u64;
    let told = events[1].text.len();
    assert!(events[1].text.contains("5 bytes of stdout"));
    let expect = [
        (ProgressStream::Stdout, 0, 99, false),
        (ProgressStream::Info, 0, told, false),
        (ProgressStream::Stdout, full + 5, 0, true),
        (ProgressStream::Info, 0, 6, true),
    ];
    assert_eq!(events.iter().map(short).collect::<Vec<_>>(), expect);
}

#[test]
fn what_a_reader_holds_is_bounded() {
    let hub = Hub::new(Pace::default());
    let mut slow = hub.listen(None);
    let mut ends = Vec::new();
    for call in 0..MAX_PIECES + 10 {
        let (progress, end) = watched(&hub, "r", &call.to_string());
        progress.send(ProgressStream::Stdout, "x".repeat(MAX_STREAM / 64));
        ends.push(end);
    }
    let events = rest(&mut slow);
    let held: usize = events
        .iter()
        .filter(|e| e.stream == ProgressStream::Stdout)
        .map(|e| e.text.len())
        .sum();
    assert_eq!(held, MAX_HELD);
    assert_eq!(
        events
            .iter()
            .filter(|e| e.stream == ProgressStream::Stdout)
            .count(),
        MAX_PIECES
    );
    let last = &events.last().unwrap().text;
    assert!(
        last.contains(&format!("{} bytes of streams", 10 * MAX_STREAM / 64)),
        "{last}"
    );
}

#[test]
fn both_of_a_fan_hear_everything() {
    let (one, two) = (Hub::new(Pace::default()), Hub::new(Pace::default()));
    let (mut first, mut second) = (one.listen(None), two.listen(None));
    let fan = Arc::new(Tee::new(one, two)) as Arc<dyn ProgressSink>;
    let live = LiveOutput::new(RunId::new("r"), CallId::new("c"), fan);
    Progress::new(Some(live), Pace::default()).info("words");
    assert_eq!(&*first.rest().unwrap().text, "words\n");
    assert_eq!(&*second.rest().unwrap().text, "words\n");
}

/// A sink that panics at its first piece.
#[derive(Debug)]
struct Breaking;

impl ProgressSink for Breaking {
    fn progress(&self, _: ProgressEvent) {
        panic!("the screen is gone");
    }
}

#[test]
fn row45_a_sink_that_panics_takes_neither_the_call_nor_the_other_sink_with_it() {
    let hub = Hub::new(Pace::default());
    let mut listener = hub.listen(None);
    let fan = Arc::new(Tee::new(Arc::new(Breaking), hub)) as Arc<dyn ProgressSink>;
    for sink in [Arc::new(Breaking) as Arc<dyn ProgressSink>, fan] {
        let live = LiveOutput::new(RunId::new("r"), CallId::new("c"), sink);
        let end = LiveOutputGuard(Some(Arc::clone(&live)));
        let progress = Progress::new(Some(live), Pace::default());
        progress.send(ProgressStream::Stdout, "one ");
        progress.send(ProgressStream::Stdout, "two");
        drop(end);
    }
    let events = rest(&mut listener);
    let expect = ("one two".to_owned(), true);
    assert_eq!(heard(&events, "c", ProgressStream::Stdout), expect);
}

#[test]
fn w2_readers_that_take_nothing_share_one_budget_and_leave_room_for_the_next() {
    let budget = ByteBudget::new(1 << 20, 1 << 10);
    let hubs = [(); 2].map(|()| Hub::within(Pace::default(), Arc::clone(&budget)));
    let mut lazy = Vec::new();
    for nth in 0..40 {
        let hub = &hubs[nth % 2];
        lazy.push(hub.listen(None));
        let (progress, end) = watched(hub, "r", &nth.to_string());
        for _ in 0..8 {
            progress.send(ProgressStream::Stdout, "x".repeat(64 << 10));
        }
        drop(end);
        assert!(budget.used() <= 1 << 20, "{} bytes", budget.used());
    }
    let mut late = hubs[0].listen(None);
    let (progress, end) = watched(&hubs[0], "r", "late");
    progress.send(ProgressStream::Stdout, "seen");
    drop(end);
    let expect = ("seen".to_owned(), true);
    assert_eq!(
        heard(&rest(&mut late), "late", ProgressStream::Stdout),
        expect
    );
    // Readers that lost text get its amount, and what was taken or dropped is free again.
    let events = rest(&mut lazy[39]);
    assert!(events.iter().any(|event| event.text.contains("left out")));
    drop((lazy, late));
    assert_eq!(budget.used(), 0);
}

#[test]
fn w2_a_long_piece_is_one_text_for_all_readers() {
    let hub = Hub::new(Pace::default());
    let mut readers = [(); 3].map(|()| hub.listen(None));
    let (progress, _end) = watched(&hub, "r", "c");
    progress.send(ProgressStream::Stdout, "x".repeat(FULL_PIECE));
    let [first, others @ ..] = readers.each_mut().map(|reader| reader.rest().unwrap().text);
    assert!(others.iter().all(|text| Arc::ptr_eq(text, &first)));
}

#[test]
fn w2_a_reader_holds_nothing_of_runs_that_it_does_not_hear() {
    let budget = ByteBudget::new(1 << 20, 0);
    let hub = Hub::new(Pace::default());
    let mut own = hub.listen_to(|run| run.as_str() == "own", budget.charge());
    for run in ["other", "own"] {
        let (progress, _end) = watched(&hub, run, "c");
        progress.send(ProgressStream::Stdout, run);
    }
    assert_eq!(budget.used(), "own".len());
    assert_eq!(&*own.rest().unwrap().text, "own");
}

#[derive(Debug, Clone)]
enum Act {
    Send(u8, u8, String),
    Take(bool),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => (0..2_u8, 0..3_u8, "[aé→😀\n]{0,12}").prop_map(|(c, s, t)| Act::Send(c, s, t)),
        1 => any::<bool>().prop_map(Act::Take),
    ];
    proptest::collection::vec(act, 0..60)
}

proptest! {
    #[test]
    fn gathering_loses_and_doubles_nothing(acts in acts(), bytes in 1..40_usize) {
        const STREAMS: [ProgressStream; 3] = [ProgressStream::Stdout, ProgressStream::Stderr, ProgressStream::Info];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let hub = Hub::new(pace(50, bytes));
            let mut listener = hub.listen(None);
            let calls = [watched(&hub, "r", "0"), watched(&hub, "r", "1")];
            let mut events = Vec::new();
            let mut sent = [[const { String::new() }; 3], [const { String::new() }; 3]];
            for act in acts {
                match act {
                    Act::Send(call, stream, text) => {
                        let (call, stream) = (usize::from(call), usize::from(stream));
                        calls[call].0.send(STREAMS[stream], text.as_str());
                        sent[call][stream].push_str(&text);
                    }
                    Act::Take(true) => events.extend(listener.rest()),
                    Act::Take(false) => {
                        let soon = Duration::from_millis(60);
                        events.extend(tokio::time::timeout(soon, listener.next()).await.ok());
                    }
                }
            }
            drop(calls);
            events.extend(rest(&mut listener));
            for (call, texts) in sent.iter().enumerate() {
                for (stream, text) in STREAMS.into_iter().zip(texts) {
                    let call = call.to_string();
                    let (got, closed) = heard(&events, &call, stream);
                    prop_assert_eq!(&got, text);
                    prop_assert_eq!(closed, !text.is_empty());
                    let mut offset = 0;
                    for event in events.iter().filter(|e| e.call.as_str() == call && e.stream == stream) {
                        prop_assert_eq!(event.offset, offset);
                        offset += event.text.len() as u64;
                    }
                }
            }
            Ok(())
        })?;
    }
}
