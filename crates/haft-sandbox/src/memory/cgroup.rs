//! Control groups for commands, if this process may create some: below or beside its own, in version 2 or
//! version 1 of the kernel's control groups.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::MemoryBound;

/// Where groups are created, and a group that is ready for the next command.
#[derive(Debug, Clone)]
pub(crate) struct ControlGroups(Arc<ControlGroupsState>);

#[derive(Debug)]
struct ControlGroupsState {
    folder: PathBuf,
    version: CgroupVersion,
    /// The path and the limit of the spare group.
    spare: Mutex<Option<(PathBuf, u64)>>,
    /// Groups whose last process had not quite exited.
    left: Mutex<Vec<PathBuf>>,
}

/// The version, which determines the control files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CgroupVersion {
    V1,
    V2,
}

/// One command's group; removed when the value is dropped.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    path: PathBuf,
    of: ControlGroups,
    bytes: u64,
}

static NEXT: AtomicU64 = AtomicU64::new(0);
/// Version 1 counts socket memory separately: sockets may use one part in this many of the limit in addition.
const SOCKETS: u64 = 8;

impl ControlGroups {
    /// Returns the first place that works, tried by creating a group with a limit in it.
    pub(crate) fn find() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        places(&own, &mounts)
            .into_iter()
            .find_map(|(folder, version)| {
                let groups = Self(Arc::new(ControlGroupsState {
                    folder,
                    version,
                    spare: Mutex::default(),
                    left: Mutex::default(),
                }));
                let tried = groups.make().ok()?;
                let works = groups.limit(&tried, 1 << 30).is_ok();
                let _ = fs::remove_dir(&tried);
                works.then(|| {
                    groups.sweep_others();
                    groups
                })
            })
    }

    pub(crate) fn bound(&self) -> MemoryBound {
        match self.0.version {
            CgroupVersion::V1 => MemoryBound::CgroupV1,
            CgroupVersion::V2 => MemoryBound::CgroupV2,
        }
    }

    /// Takes a group with a limit of `bytes` bytes.
    pub(crate) fn take(&self, bytes: u64) -> io::Result<ControlGroup> {
        let spare = lock(&self.0.spare).take();
        let (path, limit) = match spare {
            Some(spare) => spare,
            None => (self.make()?, 0),
        };
        let of = self.clone();
        let mut group = ControlGroup {
            path,
            of,
            bytes: limit,
        };
        group.limit_to(bytes)?;
        Ok(group)
    }

    /// Creates the next group while no command waits for it, and removes leftover groups.
    fn tidy(&self, bytes: u64) {
        let left = std::mem::take(&mut *lock(&self.0.left));
        let still: Vec<_> = left.into_iter().filter(|path| !removed(path)).collect();
        lock(&self.0.left).extend(still);
        if lock(&self.0.spare).is_some() {
            return;
        }
        let next = self
            .make()
            .and_then(|path| self.limit(&path, bytes).map(|()| path));
        if let Ok(path) = next
            && let Some((other, _)) = lock(&self.0.spare).replace((path, bytes))
        {
            let _ = fs::remove_dir(other);
        }
    }

    fn make(&self) -> io::Result<PathBuf> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("haft-{}-{number}", std::process::id());
        let path = self.0.folder.join(name);
        fs::create_dir(&path)?;
        Ok(path)
    }

    fn limit(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let sockets = (bytes / SOCKETS).to_string();
        let bytes = bytes.to_string();
        match self.0.version {
            CgroupVersion::V1 => {
                put(path, "memory.limit_in_bytes", &bytes)?;
                put(path, "memory.kmem.tcp.limit_in_bytes", &sockets)?;
                // Only if swap is counted; otherwise this version does not limit it.
                let _ = put(path, "memory.memsw.limit_in_bytes", &bytes);
            }
            CgroupVersion::V2 => {
                put(path, "memory.max", &bytes)?;
                let _ = put(path, "memory.swap.max", "0");
                let _ = put(path, "memory.oom.group", "1");
            }
        }
        Ok(())
    }

    /// Removes groups left behind by killed processes.
    fn sweep_others(&self) {
        for entry in fs::read_dir(&self.0.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|name| name.strip_prefix("haft-"));
            let owner = owner.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
            if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

impl Drop for ControlGroupsState {
    fn drop(&mut self) {
        let spare = lock(&self.spare).take().map(|(path, _)| path);
        for path in spare.into_iter().chain(lock(&self.left).drain(..)) {
            let _ = fs::remove_dir(path);
        }
    }
}

impl ControlGroup {
    /// Returns the file into which a single-threaded process writes 0 to join the group, together with everything it starts later.
    pub(crate) fn entrance(&self) -> PathBuf {
        self.path.join(match self.of.0.version {
            CgroupVersion::V1 => "tasks",
            CgroupVersion::V2 => "cgroup.procs",
        })
    }

    /// Gives it another limit.
    pub(crate) fn limit_to(&mut self, bytes: u64) -> io::Result<()> {
        if self.bytes != bytes {
            self.of.limit(&self.path, bytes)?;
            self.bytes = bytes;
        }
        Ok(())
    }

    /// Removes the group, and prepares the next one.
    pub(crate) fn put_away(self) {
        let (groups, bytes) = (self.of.clone(), self.bytes);
        drop(self);
        groups.tidy(bytes);
    }

    /// Returns whether the kernel killed a process in it for lack of memory.
    pub(crate) fn was_full(&self) -> bool {
        let file = match self.of.0.version {
            CgroupVersion::V1 => "memory.oom_control",
            CgroupVersion::V2 => "memory.events",
        };
        let text = fs::read_to_string(self.path.join(file)).unwrap_or_default();
        let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.is_some_and(|count| count.trim() != "0")
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        if !removed(&self.path) {
            lock(&self.of.0.left).push(self.path.clone());
        }
    }
}

fn removed(path: &Path) -> bool {
    match fs::remove_dir(path) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn put(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let mut file = File::options().write(true).open(folder.join(name))?;
    file.write_all(text.as_bytes())
}

fn lock<T>(mutex: &Mutex<T>) -> parking_lot::MutexGuard<'_, T> {
    mutex.lock()
}

/// Returns folders in which groups with a memory limit may be created: the process's own group and its parent,
/// in every hierarchy with such limits.
fn places(own: &str, mounts: &str) -> Vec<(PathBuf, CgroupVersion)> {
    let mut places = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let version = match controllers {
            "" => CgroupVersion::V2,
            list if list.split(',').any(|one| one == "memory") => CgroupVersion::V1,
            _ => continue,
        };
        let Some((point, folder)) = mounted(mounts, version, Path::new(path)) else {
            continue;
        };
        places.push((folder.clone(), version));
        if version == CgroupVersion::V2
            && let Some(above) = folder.parent().filter(|above| above.starts_with(&point))
        {
            places.push((above.to_owned(), version));
        }
    }
    // The newer version first, if a machine has both.
    places.sort_by_key(|(_, version)| *version == CgroupVersion::V1);
    places
}

/// Returns where a hierarchy is mounted, and the path of a group there.
fn mounted(mounts: &str, version: CgroupVersion, group: &Path) -> Option<(PathBuf, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (head, tail) = line.split_once(" - ")?;
        let mut head = head.split(' ').skip(3);
        let (root, point) = (head.next()?, head.next()?);
        let mut tail = tail.split(' ');
        let (kind, options) = (tail.next()?, tail.nth(1)?);
        let right = match version {
            CgroupVersion::V1 => kind == "cgroup" && options.split(',').any(|one| one == "memory"),
            CgroupVersion::V2 => kind == "cgroup2",
        };
        let below = group.strip_prefix(root).ok().filter(|_| right)?;
        Some((point.into(), Path::new(point).join(below)))
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{CgroupVersion, places};

    #[test]
    fn places_are_found_by_what_is_mounted() {
        let v1 = "4:memory:/user/1\n1:cpu:/x\n0::/\n";
        let mounts = "30 1 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      31 1 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
        let expect = [(
            PathBuf::from("/sys/fs/cgroup/memory/user/1"),
            CgroupVersion::V1,
        )];
        assert_eq!(places(v1, mounts), expect);
        let mounts = "30 1 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        let v2 = "0::/user.slice/app.slice/a.scope\n";
        let folder = PathBuf::from("/sys/fs/cgroup/user.slice/app.slice");
        let expect = [
            (folder.join("a.scope"), CgroupVersion::V2),
            (folder, CgroupVersion::V2),
        ];
        assert_eq!(places(v2, mounts), expect);
        // Only a part of the tree, as in containers.
        let mounts = "30 1 0:26 /user.slice /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        assert_eq!(
            places(v2, mounts)[0].0,
            PathBuf::from("/sys/fs/cgroup/app.slice/a.scope")
        );
        assert_eq!(places("0::/user.slice\n", mounts).len(), 1);
        assert_eq!(places("0::/other\n", mounts), []);
        assert_eq!(places("junk\n", "junk\n"), []);
    }
}
