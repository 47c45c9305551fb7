/* The only script: it fetches the live part of a page again and again, and lists while one types.
   Without it, pages are whole; they only stand still. Nothing here makes HTML of texts: the server
   has escaped what it sends. */
"use strict";

const banner = document.getElementById("banner");
const RETRY_MS = 2000;
const TYPING_MS = 250;
let isAway = false;

function say(text) {
  banner.textContent = text;
  banner.hidden = text === "";
}

/* Whether somebody is busy with what would be replaced. */
function isBusy(part) {
  const selection = document.getSelection();
  const isSelecting = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  const isTyping = part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");
  return isSelecting || isTyping || part.querySelector("details[open]") !== null;
}

function replace(part, html) {
  const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
  const scrolled = part.querySelector(".scroll")?.scrollLeft ?? 0;
  part.innerHTML = html;
  const scroll = part.querySelector(".scroll");
  if (scroll) scroll.scrollLeft = scrolled;
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

/* Returns after how many milliseconds to look again. */
async function refresh(part, isForced) {
  const url = part.dataset.live;
  if (document.hidden && !isForced) return RETRY_MS;
  try {
    const response = await fetch(url, { headers: { "Cogwork-Fragment": "1" }, redirect: "error" });
    const text = await response.text();
    if (response.status === 401) {
      say(text + " Load the page again to log in.");
    } else if (!response.ok) {
      isAway = response.status === 503;
      say(isAway ? "The container does not answer. This page goes on when it does." : text);
    } else if (part.hasAttribute("data-reload")) {
      location.reload();
    } else {
      say("");
      isAway = false;
      if (url === part.dataset.live && (isForced || !isBusy(part))) replace(part, text);
      return 1000 * Number(part.dataset.every);
    }
  } catch {
    say("The console does not answer. This page goes on when it does.");
  }
  return RETRY_MS;
}

async function keepFresh(part) {
  const first = part.hasAttribute("data-now") ? 0 : 1000 * Number(part.dataset.every);
  for (let wait = first; ; wait = await refresh(part, false)) {
    await new Promise((done) => setTimeout(done, wait));
  }
}

function searchWhileTyping(form) {
  const part = document.getElementById(form.dataset.search);
  let timer = 0;
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const query = new URLSearchParams(new FormData(form));
      part.dataset.live = form.getAttribute("action") + "?" + query;
      history.replaceState(null, "", part.dataset.live);
      refresh(part, true);
    }, TYPING_MS);
  });
}

document.querySelectorAll("[data-live]").forEach(keepFresh);
document.querySelectorAll("form[data-search]").forEach(searchWhileTyping);
document.addEventListener("keydown", (event) => {
  const search = document.querySelector("form.search input");
  if (event.key === "/" && search && !document.activeElement.matches("input, select, textarea")) {
    event.preventDefault();
    search.focus();
  }
});
