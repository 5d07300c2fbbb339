//! `Intake`, `OutgoingBudget`: what HTTP requests make a server hold: incoming bodies and unsent answers, each principal within its share.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use haft::bounds::{ByteBudget, Charge, PrincipalShares, ShareKey};
use http::StatusCode;
use http_body::Body;
use http_body_util::BodyExt;

/// How long a body waits for other bodies to release bytes.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that each body may hold in any case.
const RESERVED_BODY: usize = 16 << 10;
/// Bytes that each answer may hold in any case.
const RESERVED_ANSWER: usize = 64 << 10;

/// Request bodies, limited in length, time, and the bytes that a principal may make the server hold.
#[derive(Debug, Clone)]
pub struct Intake(PrincipalShares);

/// The limits of one body.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    /// Maximum number of bytes.
    pub bytes: usize,
    /// Time from the request's head to the end of the body.
    pub time: Duration,
}

/// A body and its charge: keep the charge for as long as the bytes, or a copy of them, are kept.
#[derive(Debug)]
pub struct ChargedBody {
    /// The body.
    pub bytes: Bytes,
    /// Its share of the budget.
    pub charge: Charge,
}

/// Why a body was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IntakeError {
    /// It is too long.
    #[error("the body is over {0} bytes")]
    TooLarge(usize),
    /// It arrived too slowly.
    #[error("the body did not arrive within {} s", .0.as_secs_f64())]
    TooSlow(Duration),
    /// The client disconnected or sent an invalid body.
    #[error("the connection ended before the body was complete")]
    Broken,
    /// The caller's principal or class holds too much.
    #[error("too many request bodies are held: try again in a moment")]
    Busy,
}

impl IntakeError {
    /// Returns the HTTP status for the error.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl Intake {
    /// Creates an intake with these bytes, plus 16 KiB for each body.
    pub fn new(bytes: PrincipalShares) -> Self {
        Self(bytes)
    }

    /// Reads a body, charging it as it arrives: one that is announced but not sent takes nothing.
    ///
    /// # Errors
    /// [`IntakeError::TooLarge`] over the limit, [`IntakeError::TooSlow`] if the body takes too long, [`IntakeError::Broken`] if
    /// the connection ends first, [`IntakeError::Busy`] if the budget for bodies is used up.
    pub async fn read<B>(
        &self,
        body: B,
        who: &ShareKey,
        within: BodyLimits,
    ) -> Result<ChargedBody, IntakeError>
    where
        B: Body<Data = Bytes>,
    {
        let announced = body.size_hint().lower();
        if usize::try_from(announced).map_or(true, |length| length > within.bytes) {
            return Err(IntakeError::TooLarge(within.bytes));
        }
        let charge = ByteBudget::of(&self.0, who, RESERVED_BODY).charge();
        let reading = collect(body, charge, within.bytes);
        let read = tokio::time::timeout(within.time, reading).await;
        read.unwrap_or(Err(IntakeError::TooSlow(within.time)))
    }
}

async fn collect<B>(body: B, mut charge: Charge, most: usize) -> Result<ChargedBody, IntakeError>
where
    B: Body<Data = Bytes>,
{
    let mut body = std::pin::pin!(body);
    // Copied together: a small piece would keep alive the whole buffer that it was read into.
    let mut bytes = Vec::new();
    while let Some(data) = next_data(body.as_mut()).await? {
        if bytes.len() + data.len() > most {
            return Err(IntakeError::TooLarge(most));
        }
        if !charge.grow_within(data.len(), BODY_TIMEOUT).await {
            return Err(IntakeError::Busy);
        }
        bytes.extend_from_slice(&data);
    }
    let bytes = bytes.into();
    Ok(ChargedBody { bytes, charge })
}

/// Returns the next piece; `None` at the end. Ignores trailers.
async fn next_data<B>(mut body: Pin<&mut B>) -> Result<Option<Bytes>, IntakeError>
where
    B: Body<Data = Bytes>,
{
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(|_| IntakeError::Broken)?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// Answers that clients have not received yet.
#[derive(Debug, Clone)]
pub struct OutgoingBudget(PrincipalShares);

impl OutgoingBudget {
    /// Creates a budget of these bytes, plus 64 KiB for each answer.
    pub fn new(bytes: PrincipalShares) -> Self {
        Self(bytes)
    }

    /// Returns the same bytes, charged to their principal until they are sent; `None` if its clients leave too much unread.
    pub fn hold(&self, bytes: Bytes, who: &ShareKey) -> Option<Bytes> {
        let mut charge = ByteBudget::of(&self.0, who, RESERVED_ANSWER).charge();
        charge.grow(bytes.len()).then(|| {
            Bytes::from_owner(ChargedBytes {
                bytes,
                _charge: charge,
            })
        })
    }
}

/// An answer's bytes with their charge: the server's buffers keep both until they are written.
struct ChargedBytes {
    bytes: Bytes,
    _charge: Charge,
}

impl AsRef<[u8]> for ChargedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::task::{Context, Poll};

    use haft::bounds::{CallerClass, Shares};
    use haft::call::Principal;
    use http_body::Frame;

    use super::*;

    /// A body of pieces; if the flag is false, silence instead of an end.
    struct Pieces(VecDeque<Bytes>, bool);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.0.pop_front() {
                Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
                None if self.1 => Poll::Ready(None),
                None => Poll::Pending,
            }
        }
    }

    fn shares(bytes: usize) -> PrincipalShares {
        PrincipalShares::by_principal(Shares {
            strangers: 0,
            clients: bytes,
            operator: bytes,
        })
    }

    fn pieces(size: usize, count: usize, ends: bool) -> Pieces {
        Pieces(vec![Bytes::from(vec![b'x'; size]); count].into(), ends)
    }

    const WITHIN: BodyLimits = BodyLimits {
        bytes: 4 << 20,
        time: Duration::from_secs(10),
    };

    #[tokio::test(start_paused = true)]
    async fn a_body_is_read_within_length_time_and_budget() {
        let intake = Intake::new(shares(1 << 20));
        let read = async |body, class: CallerClass| intake.read(body, &class.into(), WITHIN).await;
        let taken = read(pieces(1000, 3, true), CallerClass::Client)
            .await
            .unwrap();
        assert_eq!((taken.bytes.len(), taken.charge.held()), (3000, 3000));
        let whole = read(pieces(0, 1, true), CallerClass::Client).await.unwrap();
        assert!(whole.bytes.is_empty());
        for (body, class, expect) in [
            (
                pieces(1 << 20, 5, true),
                CallerClass::Client,
                IntakeError::Busy,
            ),
            (
                pieces(9, 1, false),
                CallerClass::Client,
                IntakeError::TooSlow(WITHIN.time),
            ),
            (
                pieces(20 << 10, 1, true),
                CallerClass::Stranger,
                IntakeError::Busy,
            ),
        ] {
            assert_eq!(read(body, class).await.unwrap_err(), expect);
        }
        let small = BodyLimits { bytes: 5, ..WITHIN };
        let client = CallerClass::Client.into();
        let long = intake.read(pieces(3, 2, true), &client, small);
        assert_eq!(long.await.unwrap_err(), IntakeError::TooLarge(5));
    }

    #[tokio::test(start_paused = true)]
    async fn w5_bodies_that_are_held_keep_neither_small_ones_nor_the_operator_out() {
        let intake = Intake::new(shares(64 << 20));
        let client = CallerClass::Client.into();
        let other = ShareKey {
            class: CallerClass::Client,
            principal: Some(Principal::local("other")),
        };
        let mut held = Vec::new();
        while let Ok(taken) = intake.read(pieces(1 << 20, 4, true), &client, WITHIN).await {
            held.push(taken);
        }
        assert!((10..16).contains(&held.len()), "{} bodies", held.len());
        for (size, who) in [
            (16 << 10, &client),
            (1 << 20, &CallerClass::Operator.into()),
            (4 << 20, &other),
        ] {
            let read = intake.read(pieces(size, 1, true), who, WITHIN).await;
            assert!(read.is_ok(), "{who:?}");
        }
        drop(held);
        let again = intake.read(pieces(1 << 20, 4, true), &client, WITHIN);
        assert!(again.await.is_ok());
    }

    #[test]
    fn an_answer_is_charged_until_its_last_copy_is_gone() {
        let outgoing = OutgoingBudget::new(shares(1 << 20));
        let client = CallerClass::Client.into();
        let answer = Bytes::from(vec![0; 512 << 10]);
        let held = outgoing.hold(answer.clone(), &client).unwrap();
        let copy = held.slice(10..20);
        assert_eq!(held, answer);
        drop(held);
        assert!(outgoing.hold(answer.clone(), &client).is_none());
        assert!(
            outgoing
                .hold(Bytes::from_static(b"small"), &client)
                .is_some()
        );
        assert!(
            outgoing
                .hold(answer.clone(), &CallerClass::Operator.into())
                .is_some()
        );
        drop(copy);
        assert!(outgoing.hold(answer, &client).is_some());
    }
}
