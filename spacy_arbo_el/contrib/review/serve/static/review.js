// Pages work without this file. It adds keys, and replaces the page's content instead of loading it.
"use strict";

let busy = false;

const isField = element =>
  element.matches("input:not([type=checkbox]):not([type=hidden]), textarea, select");
const find = (selector, root = document) => root.querySelector(selector);

function say(text, isError) {
  const line = document.createElement("p");
  line.className = isError ? "message error" : "message";
  line.textContent = text;
  find("#message").replaceChildren(line);
  line.scrollIntoView({ block: "nearest" });
}

// A question with a form, above what was typed.
function ask(question) {
  find("#message").replaceChildren(question);
  question.scrollIntoView({ block: "nearest" });
  find("button", question).focus();
}

function parse(text) {
  return new DOMParser().parseFromString(text, "text/html");
}

// Take over the content of another page of ours.
function show(text, address) {
  const page = parse(text);
  if (!find("#main", page)) return location.assign(address);
  if (address !== location.href) history.pushState(null, "", address);
  document.title = page.title;
  for (const part of ["#head", "#main"]) find(part).replaceWith(find(part, page));
  begin(true);
}

async function load(address, options) {
  if (busy) return;
  busy = true;
  document.body.classList.add("busy");
  try {
    const response = await fetch(address, { headers: { Accept: "text/html" }, ...options });
    const text = await response.text();
    const error = response.ok ? null : find(".message.error", parse(text));
    if (response.ok) show(text, response.url);
    else if (error && find("form", error)) ask(error);
    else say(error?.textContent || text.slice(0, 300), true);
  } catch {
    say("The server can't be reached. What was decided is safe; start it again.", true);
  } finally {
    busy = false;
    document.body.classList.remove("busy");
  }
}

async function fill(element, address) {
  const response = await fetch(address);
  element.innerHTML = response.ok ? await response.text() : "";
}

document.addEventListener("submit", event => {
  const form = event.target;
  if (form.method === "dialog" || form.matches("[data-plain]")) return;
  event.preventDefault();
  const data = new URLSearchParams(new FormData(form, event.submitter));
  // Not form.id, which is the field of that name.
  if (form.matches("#split") && !data.has("mentions")) {
    return say("Select mentions first: j, then space.", true);
  }
  if (form.dataset.into) {
    clearTimeout(typing);
    const target = document.getElementById(form.dataset.into);
    const isShown = find("ol", target)?.dataset.for === data.get("text").trim();
    if (isShown) find("button", target)?.click();
    else search(form).then(() => find("button", target)?.focus());
  } else if (form.method === "get") {
    for (const [name, value] of [...data]) if (!value) data.delete(name);
    load(`${form.action}?${data}`);
  } else {
    load(form.action, { method: "POST", body: data });
  }
});

// The entities found are shown while one types. Enter links to the first one.
let typing;
document.addEventListener("input", event => {
  const form = event.target.closest("form[data-into]");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(() => search(form), 150);
});

function search(form) {
  const target = document.getElementById(form.dataset.into);
  const data = new URLSearchParams(new FormData(form));
  return fill(target, `${form.action}?${data}`).then(() => target);
}

document.addEventListener("click", event => {
  const opener = event.target.closest("[data-dialog]");
  if (opener) document.getElementById(opener.dataset.dialog).showModal();
});

// Explanations cost time, and are made when someone asks.
document.addEventListener("toggle", event => {
  const details = event.target;
  if (details.open && details.dataset.open && !details.dataset.done) {
    details.dataset.done = "yes";
    const place = document.createElement("div");
    details.append(place);
    fill(place, details.dataset.open);
  }
}, true);

// To the mention after or before the one that has the focus.
function move(step) {
  const members = [...document.querySelectorAll("[data-member]")];
  const now = members.indexOf(document.activeElement);
  const next = members[Math.min(Math.max(now + step, 0), members.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function press(element) {
  if (isField(element)) {
    element.focus();
    element.select?.();
  } else {
    element.click();
  }
}

document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || find("dialog[open]")) return;
  const active = document.activeElement;
  if (event.key === "Escape" && isField(active)) return active.blur();
  if (isField(active)) return;
  if (event.key === "Enter" && active.matches("a, button, summary, input")) return;
  if (event.key === "j" || event.key === "i") return move(event.key === "j" ? 1 : -1);
  const key = CSS.escape(event.key);
  const focused = find(`[data-focus="${key}"]`);
  if (focused) {
    event.preventDefault();
    return focused.focus();
  }
  const element = find(`[data-key="${key}"]:not(:disabled)`);
  if (!element) return;
  event.preventDefault();
  if (!busy) press(element);
});

window.addEventListener("popstate", () => load(location.href));

function begin(moved) {
  for (const element of document.querySelectorAll("[data-load]")) {
    const address = element.dataset.load;
    element.removeAttribute("data-load");
    fill(element, address);
  }
  if (!moved) return;
  window.scrollTo(0, 0);
  (find("[autofocus]") || find("#main")).focus({ preventScroll: true });
}

begin(false);
