-- Why a request ended without its call, for whoever reads about it. Few have a reason: the table of requests stays as it is.
CREATE TABLE approval_reasons (
    id  TEXT NOT NULL PRIMARY KEY,
    why TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER approval_reasons_gone AFTER DELETE ON approvals BEGIN
    DELETE FROM approval_reasons WHERE id = old.id;
END;

PRAGMA user_version = 9;
