//! The web server of the made-up internet, and the listeners of the MCP servers.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::{fs, io, thread};

use crate::http::{Request, read_request, respond};
use crate::names::WEB;
use crate::servers::{SERVERS, Server};
use crate::text::private;
use crate::world::World;

/// What a server of git says that speaks version 2 of its protocol: what it can do.
const GIT: &str = "001e# service=git-upload-pack\n0000000eversion 2\n0015agent=git/2.47.0\n0013ls-refs=unborn\n0012fetch=shallow\n0000";

/// Listens for all hosts and all MCP servers until the process ends.
pub(crate) fn serve(world: &Arc<World>) -> io::Result<()> {
    for port in [80, 8080] {
        listen(TcpListener::bind((WEB, port))?, world, None);
    }
    for server in SERVERS {
        let listener = TcpListener::bind(("127.0.0.1", server.port()))?;
        listen(listener, world, Some(server));
    }
    Ok(())
}

fn listen(listener: TcpListener, world: &Arc<World>, server: Option<&'static Server>) {
    let world = Arc::clone(world);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let Ok(request) = read_request(&stream) else {
                    return;
                };
                let _ = match server {
                    Some(server) => speak_mcp(&stream, &request, server, &world),
                    None => show_page(&stream, &request, &world),
                };
            });
        }
    });
}

fn speak_mcp(
    stream: &TcpStream,
    request: &Request,
    server: &Server,
    world: &World,
) -> io::Result<()> {
    if request.method != "POST" {
        return respond(stream, "405 Method Not Allowed", b"");
    }
    let message = serde_json::from_str(&request.body).unwrap_or_default();
    match server.answer(&message, world) {
        Some(answer) => {
            let head = "200 OK\r\nContent-Type: application/json";
            respond(stream, head, answer.to_string().as_bytes())
        }
        None => respond(stream, "202 Accepted", b""),
    }
}

fn show_page(stream: &TcpStream, request: &Request, world: &World) -> io::Result<()> {
    world.note_arrival(&request.host, &request.whole);
    let (case, folder) = world.scene();
    let path = request.target.split('?').next().unwrap_or_default();
    let pages = &case.world.pages;
    let named = [&request.target, path, "/*"].map(|path| format!("{}{path}", request.host));
    if let Some(text) = named.iter().find_map(|name| pages.get(name)) {
        if let Some(to) = text.strip_prefix("-> ") {
            // Wherever its query says.
            let named = request.target.split_once("to=").map_or("/", |(_, to)| to);
            let to = if to == "QUERY" { named } else { to };
            return respond(stream, &format!("302 Found\r\nLocation: {to}"), b"");
        }
        if text == "GIT" {
            let head = "200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement";
            return respond(stream, head, GIT.as_bytes());
        }
        let kind = if text.starts_with('<') {
            "html"
        } else {
            "plain"
        };
        let head = format!("200 OK\r\nContent-Type: text/{kind}; charset=utf-8");
        return respond(stream, &head, private(text).as_bytes());
    }
    let file = folder.join("www").join(&request.host);
    match fs::read(file.join(path.trim_start_matches('/'))) {
        Ok(bytes) if !path.contains("..") => respond(stream, "200 OK", &bytes),
        _ => respond(stream, "404 Not Found", b"nothing here\n"),
    }
}
