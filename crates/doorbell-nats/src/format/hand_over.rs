//! A delivery with its message.

use bytes::Bytes;
use countersign_core::{
    model::message::{Message, Party},
    notify::HandOver,
    store::{Delivery, MailboxKey, PayloadId},
};
use countersign_wire::{limits::MAX_ID, timestamp::Timestamp};

use super::{
    field::{MAX_TEXT, Malformed, Reader, Writer},
    ring_batch::{encode_key, key},
};

/// Bytes of a body, and of a trace, that is handed over. What is larger is read by whoever sends it.
pub const MAX_BODY: usize = 16 << 10;

const ENFORCER: u8 = 0;
const APPROVER: u8 = 1;

/// What it takes in a message, at most; `None` if it is too large for one.
pub(crate) fn hand_over_size(hand_over: &HandOver) -> Option<usize> {
    // Tags, lengths, numbers and times.
    const AROUND: usize = 128;
    let HandOver { delivery, message, .. } = hand_over;
    let trace = message.trace.as_ref().map_or(0, Bytes::len);
    let names = [delivery.msg_type.as_str(), &delivery.subject.id, message.msg_type.as_str()];
    let fits = message.body.len() <= MAX_BODY && trace <= MAX_BODY;
    let lengths = names.iter().map(|name| name.len());
    // Tenant, mailbox, two message ids, the request and a party.
    let around = AROUND + 6 * MAX_ID + lengths.clone().sum::<usize>();
    (fits && lengths.max() <= Some(MAX_TEXT)).then(|| around + message.body.len() + trace)
}

pub(super) fn encode_hand_over(writer: &mut Writer, hand_over: &HandOver) {
    let HandOver { mailbox, delivery, message } = hand_over;
    writer.text(mailbox.tenant.as_str());
    writer.text(&mailbox.mailbox.to_string());
    encode_delivery(writer, delivery);
    encode_message(writer, message);
}

fn encode_delivery(writer: &mut Writer, delivery: &Delivery) {
    writer.number(delivery.number);
    writer.text(delivery.msg_id.as_str());
    writer.text(delivery.msg_type.as_str());
    encode_key(writer, &delivery.subject);
    writer.option(delivery.payload, |writer, id| writer.array(&id.0.to_be_bytes()));
    writer.time(delivery.at.unix_micros());
    writer.time(delivery.until.unix_micros());
}

fn encode_message(writer: &mut Writer, message: &Message) {
    writer.text(message.msg_id.as_str());
    writer.text(message.msg_type.as_str());
    writer.text(message.request_id.as_str());
    writer.time(message.created_at.unix_micros());
    writer.option(message.expires_at, |writer, time| writer.time(time.unix_micros()));
    match &message.from {
        Party::Enforcer(id) => {
            writer.byte(ENFORCER);
            writer.text(id.as_str());
        }
        Party::Approver(id) => {
            writer.byte(APPROVER);
            writer.text(id.as_str());
        }
    }
    writer.bytes(&message.body);
    writer.option(message.trace.as_ref(), |writer, trace| writer.bytes(trace));
}

pub(super) fn hand_over(reader: &mut Reader<'_>) -> Result<HandOver, Malformed> {
    Ok(HandOver {
        mailbox: MailboxKey { tenant: reader.parsed()?, mailbox: reader.parsed()? },
        delivery: delivery(reader)?,
        message: message(reader)?,
    })
}

fn delivery(reader: &mut Reader<'_>) -> Result<Delivery, Malformed> {
    Ok(Delivery {
        number: reader.number()?,
        msg_id: reader.parsed()?,
        msg_type: reader.parsed()?,
        subject: key(reader)?,
        payload: reader.option(Reader::array)?.map(|id| PayloadId(u128::from_be_bytes(id))),
        at: time(reader)?,
        until: time(reader)?,
    })
}

fn message(reader: &mut Reader<'_>) -> Result<Message, Malformed> {
    Ok(Message {
        msg_id: reader.parsed()?,
        msg_type: reader.parsed()?,
        request_id: reader.parsed()?,
        created_at: time(reader)?,
        expires_at: reader.option(time)?,
        from: match reader.byte()? {
            ENFORCER => Party::Enforcer(reader.parsed()?),
            APPROVER => Party::Approver(reader.parsed()?),
            _ => return Err(Malformed),
        },
        body: Bytes::copy_from_slice(reader.bytes(MAX_BODY)?),
        trace: reader.option(|reader| reader.bytes(MAX_BODY).map(Bytes::copy_from_slice))?,
    })
}

fn time(reader: &mut Reader<'_>) -> Result<Timestamp, Malformed> {
    let unix_micros = reader.time()?;
    let time = Timestamp::from_unix_micros(unix_micros);
    // Otherwise it was clamped.
    if time.unix_micros() == unix_micros { Ok(time) } else { Err(Malformed) }
}
