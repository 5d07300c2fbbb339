// A package registry on loopback in npm's format: the metadata of a package, and its tarball.

import crypto from "node:crypto";
import http from "node:http";
import zlib from "node:zlib";

/** Loopback, but neither `localhost` nor 127.0.0.1, which in a jail are the jail's own. */
const HOST = "127.0.0.2";

/** Returns a file in the archive format `ustar`: a header of 512 bytes, then the text, padded to whole blocks. */
function archived(name, text) {
  const header = Buffer.alloc(512);
  const put = (at, value) => header.write(value, at, "latin1");
  const octal = (value, digits) => value.toString(8).padStart(digits, "0");
  put(0, name);
  put(100, `${octal(0o644, 7)}\0`);
  put(108, `${octal(0, 7)}\0${octal(0, 7)}\0${octal(Buffer.byteLength(text), 11)}\0${octal(0, 11)}\0`);
  put(148, " ".repeat(8));
  put(156, "0");
  put(257, "ustar\0" + "00");
  const sum = header.reduce((total, byte) => total + byte, 0);
  put(148, `${octal(sum, 6)}\0 `);
  const body = Buffer.from(text);
  return Buffer.concat([header, body, Buffer.alloc((512 - (body.length % 512)) % 512)]);
}

function tarball(files) {
  const members = Object.entries(files).map(([name, text]) => archived(`package/${name}`, text));
  return zlib.gzipSync(Buffer.concat([...members, Buffer.alloc(1024)]));
}

/** Serves one version of one package; `close` stops it. */
export async function serveRegistry(name, version, code) {
  const about = { name, version, main: "index.js" };
  const packed = tarball({ "package.json": JSON.stringify(about), "index.js": code });
  const integrity = `sha512-${crypto.createHash("sha512").update(packed).digest("base64")}`;
  const server = http.createServer((request, response) => {
    if (request.url === `/${name}`) {
      const dist = { tarball: `${url}${name}/-/${name}-${version}.tgz`, integrity };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ name, "dist-tags": { latest: version }, versions: { [version]: { ...about, dist } } }));
    } else if (request.url === `/${name}/-/${name}-${version}.tgz`) {
      response.end(packed);
    } else {
      response.statusCode = 404;
      response.end("{}");
    }
  });
  await new Promise((resolve) => server.listen(0, HOST, resolve));
  const place = `${HOST}:${server.address().port}`;
  const url = `http://${place}/`;
  return { place, url, close: () => server.close() };
}
