//! What anybody writes to a keeper's socket is either refused or a question that is asked again with the same parts; each host's reader
//! takes any message, and only a whole verdict counts.

#![no_main]

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use countersign_agents::{
    call_socket::frames::{self, FrameError, PARTS, Question},
    calls::event::Kind,
    hosts,
    proposals::kept,
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    // What the other end says is a verdict only as a whole.
    if let Ok(verdict) = frames::read_verdict(&mut &data[..]) {
        let written = frames::part_bytes(&verdict).expect("a verdict that was read can be written");
        let read = frames::read_verdict(&mut &written[..]).expect("what we write we can read");
        assert_eq!(read, verdict);
        assert!(frames::read_verdict(&mut &written[..written.len() - 1]).is_err());
    }
    let Some((version, text)) = data.split_first_chunk::<4>() else { return };
    let Ok(parts) = parts(text) else { return };
    match *version {
        frames::VERSION => {
            if let Ok(question) = Question::from_parts(parts) {
                asked(&question);
            }
        }
        frames::PROPOSAL => {
            if let Ok((start, caller, proposal)) = kept::proposed(parts) {
                let message = serde_json::to_vec(&proposal).expect("a proposal that was read can be written");
                let written = frames::question_bytes(frames::PROPOSAL, &start, &caller, &message)
                    .expect("within the limits");
                let again = split(&written);
                assert_eq!(kept::proposed(again).expect("what we write we can read").0, start);
            }
        }
        _ => {}
    }
});

fn asked(question: &Question) {
    let written = Question::bytes(&question.start, &question.caller, &question.message);
    // A start may become longer when it is written in full.
    if let Ok(written) = written {
        assert_eq!(&Question::from_parts(split(&written)).expect("what we write we can read"), question);
    }
    let Ok(message) = serde_json::from_slice::<Value>(&question.message) else { return };
    for host in hosts::ALL {
        let is_call =
            host.read(&message, &question.caller).is_ok_and(|event| matches!(event.kind, Kind::Call { .. }));
        // A failure at an event that asks about a call has to deny.
        assert!(!is_call || host.decides(host.event_name(&message)), "{}", host.word());
    }
}

fn split(written: &[u8]) -> [Vec<u8>; PARTS] {
    parts(&written[4..]).expect("what we write has its parts")
}

/// The parts of a question, read as a keeper does. What is all there keeps nobody waiting.
fn parts(mut text: &[u8]) -> Result<[Vec<u8>; PARTS], FrameError> {
    let reading = pin!(frames::read_parts(&mut text, |_| async { Ok(()) }));
    match reading.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(read) => read.map(|(parts, _)| parts),
        Poll::Pending => unreachable!("bytes in memory are there at once"),
    }
}
