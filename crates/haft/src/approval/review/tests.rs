use super::*;
use crate::approval::preview::FileChange;
use crate::permission::{Effect, PathClaim, Permission, Verdict};
use crate::policy::{Cause, CauseKind};
use crate::spec::Risk;
use crate::testing::approval_request;

fn request(permissions: Vec<Permission>) -> ApprovalRequest {
    let mut request = approval_request("write_file", "{}").unwrap();
    request.verdicts = vec![Verdict::Ask; permissions.len()];
    request.snapshot.permissions = permissions;
    request
}
