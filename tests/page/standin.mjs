// standin: serves the page of the working tree where the server has none yet. It goes when it has.
import { createHash } from "node:crypto";
import fs from "node:fs";

const FOLDER = new URL("../../server/page/", import.meta.url);
const bare = (text) =>
  text.split("\n").map((line) => line.trimStart()).filter((line) => line && !line.startsWith("//"))
    .join("\n");
const read = (name) => fs.readFileSync(new URL(name, FOLDER), "utf8");

const pack = () => {
  const css = [], js = [], out = [];
  for (const line of read("index.html").split(/(?<=\n)/)) {
    const sheet = /^\s*<link rel="stylesheet" href="(.*?)">/.exec(line);
    const script = /^\s*<script src="(.*?)" defer><\/script>/.exec(line);
    if (sheet) css.push(bare(read(sheet[1])));
    else if (script) js.push(bare(read(script[1])));
    else out.push(line.trimStart());
  }
  const style = css.join("\n"), script = `"use strict";\n${js.join("\n")}`;
  const html = out.join("").replace("</head>", () => `<style>${style}</style>\n</head>`)
    .replace("</body>", () => `<script>${script}</script>\n</body>`);
  const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  return { html, policy: `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; `
    + "connect-src 'self'; img-src blob: data:; base-uri 'none'; form-action 'none'; "
    + "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'" };
};

export const standIn = async (page, server) => {
  if (process.env.ATTEND_PAGE !== "dev" && (await server.get("/")).status !== 404) return;
  const { html, policy } = pack();
  await page.route((url) => url.pathname === "/", (route) => route.fulfill({ body: html,
    headers: { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy } }));
};
