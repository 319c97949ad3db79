//! What commands of the tool propose: decided here, done by whoever has asked.

use countersign_client::receipt::Outcome;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
    time::{Instant, sleep_until, timeout},
};

use super::{
    accounts::Account,
    portion::{ANSWER_TIME, MAX_OPEN},
};
use crate::{
    asking::Interruption,
    call_socket::frames::{part_bytes, read_part},
    execution::Plan,
    proposals::{
        Proposal,
        kept::{self, Approved, ApprovedFile, MAX_OUTCOME, Reply},
        permission::Permission,
    },
    tool::{
        caller::Caller,
        exit::{Exit, Failure},
        files::Root,
        home::Home,
        output::{Listener, heard_by},
    },
};

/// How a command of the tool was started, its process, and what it proposes.
pub(super) type Proposed = (kept::Start, Caller, Proposal);

/// A proposal, and who has made it.
pub(super) struct Received {
    pub(super) proposed: Box<Proposed>,
    pub(super) root: Root,
    pub(super) user: u32,
}

/// Decides, says so, and waits to hear what became of it. It counts as open until then.
pub(super) async fn answer(account: &Account, home: &Home, asked: Received, stream: UnixStream) {
    let (mut reader, mut writer) = stream.into_split();
    let Ok(_open) = account.portion.open.try_acquire() else {
        let failure = Failure::new(Exit::Failed, format!("{MAX_OPEN} questions wait for an answer already"));
        return end(&mut writer, &Reply::Failed(failure.next("wait until some are answered"))).await;
    };
    match Box::pin(decided(home, asked, &mut reader, &mut writer)).await {
        None => {}
        Some(Err(failure)) => end(&mut writer, &Reply::Failed(failure)).await,
        Some(Ok((permission, approved))) => {
            end(&mut writer, &Reply::Approved(approved)).await;
            act(permission, &mut reader).await;
        }
    }
}

/// Waits for what became of it. Whoever ends without a word may have done it: its use stays without a receipt.
async fn act(permission: Permission, reader: &mut OwnedReadHalf) {
    if let Ok(Some(part)) = read_part(reader, MAX_OUTCOME).await
        && let Ok(outcome) = serde_json::from_slice::<Outcome>(&part)
    {
        permission.finish(outcome).await;
    }
}

/// The permission, with what to say of it; `None` if nobody waits for it any longer.
async fn decided(
    home: &Home,
    asked: Received,
    reader: &mut OwnedReadHalf,
    writer: &mut OwnedWriteHalf,
) -> Option<Result<(Permission, Approved), Failure>> {
    let Received { proposed, root, user } = asked;
    let (start, caller, proposal) = *proposed;
    let (words, mut said) = mpsc::unbounded_channel();
    let (waiting, hung_up) = watch::channel(());
    let deciding = async {
        if proposal.command().is_some_and(|command| command.run_as.user() != user) {
            let what = "the command would run under another account than that of whoever asks";
            return Err(Failure::new(Exit::Usage, what).next("nothing was asked"));
        }
        let mut interruption = Interruption::by_caller(hung_up);
        proposal.clone().permission(home, start.profile.as_deref(), &caller, &mut interruption).await
    };
    let listener = Listener { words, is_live: start.is_live };
    let deciding = root.seen_by(heard_by(listener, deciding));
    tokio::pin!(deciding);
    let mut waiting = Some(waiting);
    let mut until = None;
    let ended = loop {
        tokio::select! {
            biased;
            Some(said) = said.recv() => if send(writer, &Reply::Said(said)).await { continue },
            ended = &mut deciding => break ended,
            () = until_closed(reader), if waiting.is_some() => {}
            () = over(until) => return None,
        }
        // Whoever is asked learns that nobody waits for the answer.
        if waiting.take().is_some() {
            until = Some(Instant::now() + ANSWER_TIME);
        }
    };
    while let Ok(said) = said.try_recv()
        && send(writer, &Reply::Said(said)).await
    {}
    match ended {
        Ok(permission) if waiting.is_none() => {
            let reason = "whoever asked had ended before the answer came".to_owned();
            permission.finish(Outcome::Refused { reason }).await;
            None
        }
        Ok(mut permission) => {
            // Its contents are not needed any longer.
            let plan = permission.plan.take();
            let asked = proposal.command().map(|command| command.argv.as_slice());
            let changed = plan.as_ref().map(Plan::argv).filter(|argv| Some(*argv) != asked);
            let argv = changed.map(<[String]>::to_vec);
            let files = plan.map(|plan| plan.bound_files().iter().map(ApprovedFile::of).collect());
            let approved = Approved {
                decision: permission.json(),
                files: files.unwrap_or_default(),
                env: permission.env.clone(),
                argv,
            };
            Some(Ok((permission, approved)))
        }
        Err(failure) => Some(Err(failure)),
    }
}

async fn over(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Waits until the other end says nothing more, or says what nobody has asked for.
async fn until_closed(reader: &mut OwnedReadHalf) {
    drop(reader.read(&mut [0]).await);
}

/// Says something, and whether it was taken in time. A part that was taken in part is followed by no other.
async fn send(writer: &mut OwnedWriteHalf, reply: &Reply) -> bool {
    let Ok(bytes) = part_bytes(reply) else { return false };
    timeout(ANSWER_TIME, writer.write_all(&bytes)).await.is_ok_and(|written| written.is_ok())
}

/// Says the last thing. If it is not taken, the other end acts on nothing.
async fn end(writer: &mut OwnedWriteHalf, reply: &Reply) {
    let _ = send(writer, reply).await;
}
