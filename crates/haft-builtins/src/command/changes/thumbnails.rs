//! Adds thumbnails to the meanings of changed pictures.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haft::approval::meaning::{Meaning, Picture};

use crate::command::changes::Views;
use crate::command::changes::opened_side::open;
use crate::command::changes::pending::PendingChanges;
use crate::command::meaning::{MAX_PIXELS, MAX_THUMBNAIL, PictureReader, Side};
use crate::work::blocking;

/// Maximum number of thumbnails of one request.
const MAX_THUMBNAILS: usize = 12;
/// Maximum size of a picture that is made smaller, in bytes.
const MAX_FILE: u64 = 8 << 20;
/// Maximum time for all thumbnails of a request.
const MAX_TIME: Duration = Duration::from_secs(4);

/// Makes the thumbnails of a request's pictures, as far as its limits allow.
pub(super) async fn add_thumbnails(
    views: &Arc<Views>,
    changes: &Arc<PendingChanges>,
    meanings: &mut [Meaning],
) {
    let Some(reader) = views.options.pictures.clone() else {
        return;
    };
    let (ends, mut left) = (Instant::now() + MAX_TIME, MAX_THUMBNAILS);
    for meaning in meanings {
        let (Some(pictures), Some(path)) = (&mut meaning.pictures, meaning.covers.first()) else {
            continue;
        };
        for (picture, side) in [
            (&mut pictures.before, Side::Before),
            (&mut pictures.after, Side::After),
        ] {
            let is_small = |one: &&mut Picture| {
                one.bytes <= MAX_FILE && u64::from(one.width) * u64::from(one.height) <= MAX_PIXELS
            };
            if let Some(picture) = picture.as_mut().filter(is_small)
                && left > 0
                && Instant::now() < ends
            {
                left -= 1;
                let file = content(views, changes, PathBuf::from(path), side).await;
                picture.thumbnail = thumbnail(&*reader, file).await;
            }
        }
    }
}

async fn thumbnail(reader: &dyn PictureReader, file: Option<Bytes>) -> Option<String> {
    let made = reader.thumbnail(file?).await;
    made.filter(|text| text.len() <= MAX_THUMBNAIL)
}

async fn content(
    views: &Arc<Views>,
    changes: &Arc<PendingChanges>,
    path: PathBuf,
    side: Side,
) -> Option<Bytes> {
    let (views, changes) = (Arc::clone(views), Arc::clone(changes));
    let read = blocking(move |_| {
        let open = open(&views.workspace, &changes.collected, &path, side);
        Ok(open.ok().and_then(|content| content.whole(MAX_FILE)))
    });
    read.await.ok().flatten().map(Bytes::from)
}
