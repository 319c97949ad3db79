//! What went wrong between this machine and the gateway, in words for the person who waits.

use countersign_client::{
    again::MAX_AGAIN,
    approver::DecideError,
    enforcer::{AskError, PairError},
    http::CallError,
    pairing::PairingError,
    reply::Rejected,
    request::{OpenedRequest, RequestError},
};

use super::{
    exit::{Exit, Failure},
    moment,
    output::short,
};

/// A call that has no usable answer.
pub fn describe(error: &CallError) -> Failure {
    match error {
        CallError::Unreachable { gateway, .. } if error.is_untrusted() => {
            Failure::new(Exit::Unreachable, format!("the certificate of {gateway} is not trusted on this machine"))
                .next("check the address; if an authority of your own has issued it, add that to the system's authorities")
        }
        CallError::Unreachable { gateway, reason } => {
            Failure::new(Exit::Unreachable, format!("the gateway at {gateway} can't be reached: {reason}"))
                .next("check `countersign status`, or start it with `countersign up` if it is your own")
        }
        CallError::Refused { status: 401, code, .. } => {
            Failure::new(Exit::Unreachable, "the gateway no longer accepts this machine's key")
                .next("ask its operator for a new invitation and join again with `countersign join`")
                .detail(code)
        }
        CallError::Refused { status: 429, code, .. } => {
            Failure::new(Exit::Unreachable, "the gateway is getting too many calls")
                .next("try again in a minute")
                .detail(code)
        }
        CallError::Refused { status, code, .. } => {
            Failure::new(Exit::Unreachable, "the gateway refused").detail(format!("{code}, status {status}"))
        }
        _ => Failure::new(Exit::Unreachable, "the gateway's answer makes no sense to this program")
            .next("check that the address is a Countersign gateway of about the same version"),
    }
}

/// A request that ended without a decision that may be acted on.
pub fn describe_ask(error: &AskError) -> Failure {
    match error {
        AskError::Expired => Failure::new(Exit::Expired, "nobody answered in time")
            .next("ask again, or give people longer with --valid-for"),
        AskError::AskedTooOften => {
            Failure::new(Exit::Expired, format!("it was asked again {MAX_AGAIN} times, and nobody answered in time"))
                .next("run the command again when somebody is there")
        }
        AskError::Replaced => Failure::new(Exit::TakenBack, error).next("wait for that one with `countersign wait`"),
        AskError::TakenBack => Failure::new(Exit::TakenBack, "the request was taken back or cancelled"),
        AskError::Call(error) => describe(error),
        AskError::Request(RequestError::NobodyPaired) => Failure::new(Exit::NotSetUp, "nobody is paired to answer")
            .next("pair a person's phone or terminal with `countersign pair`"),
        AskError::Request(error @ RequestError::NobodyVerified) => Failure::new(Exit::NotSetUp, error)
            .next("pair the phone again, with its device lock; `countersign devices` shows which devices have a known lock"),
        AskError::Rejected(error @ (Rejected::NotVerified | Rejected::Lock(_))) => Failure::new(Exit::Failed, error)
            .next("nothing was run; if it was you, pair the device again so that this machine knows its lock"),
        AskError::Request(error) => Failure::new(Exit::Failed, error),
        other => Failure::new(Exit::Unreachable, other)
            .next("the gateway or the answering device is not what it should be; look at `countersign devices` before you ask again"),
    }
}

/// An answer to a request that did not arrive.
pub fn describe_decide(error: &DecideError, request: &OpenedRequest) -> Failure {
    match error {
        DecideError::AnsweredBefore => Failure::new(Exit::Failed, error).next("your answer changes nothing"),
        DecideError::TooLate => too_late(request),
        DecideError::TakenBack => Failure::new(Exit::TakenBack, error),
        DecideError::Call(error) => describe(error),
        other => Failure::new(Exit::Failed, other),
    }
}

/// An answer that comes after the request has expired.
pub fn too_late(request: &OpenedRequest) -> Failure {
    let what = format!("too late: it expired at {}", moment::clock(request.expires_at));
    Failure::new(Exit::Expired, what)
        .next(format!("ask for it again with `countersign ask-again {}`", short(&request.request_id)))
}

/// A pairing that has failed.
pub fn describe_pairing(error: &PairError) -> Failure {
    match error {
        PairError::Call(CallError::Refused { status: 404, .. }) => {
            Failure::new(Exit::Failed, "this pairing code is unknown, used or expired")
                .next("start again on the other side: `countersign pair`")
        }
        PairError::Call(error) => describe(error),
        PairError::Expired => Failure::new(Exit::Expired, "nobody answered within ten minutes")
            .next("start again with `countersign pair`"),
        PairError::Pairing(error @ PairingError::MachineNotNamed) => Failure::new(Exit::Failed, error).next(
            "run `countersign pair` without --typed on the other side, and paste the link that it shows",
        ),
        PairError::Pairing(error @ PairingError::UnknownKeys) => Failure::new(Exit::Failed, error)
            .next("nothing was pinned; update the program on the other side, and start again"),
        other => Failure::new(Exit::Failed, other).next(
            "nothing was pinned; if it happens again, somebody between the two may be changing messages",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_gateway_leaves_out_is_no_attack() {
        for error in [PairingError::MachineNotNamed, PairingError::UnknownKeys] {
            let words = describe_pairing(&PairError::Pairing(error)).to_string();
            assert!(!words.contains("somebody between"), "{words}");
        }
        let words = describe_pairing(&PairError::Pairing(PairingError::MachineNotNamed)).to_string();
        assert!(words.contains("paste the link"), "{words}");
        let replaced = describe_pairing(&PairError::Pairing(PairingError::EnforcerReplaced)).to_string();
        assert!(replaced.contains("somebody between"), "{replaced}");
    }
}
