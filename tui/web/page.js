// What textual.js, which draws the terminal, leaves to the page around it.

// Messages may hold what looks like a link: a click there is for the program, and leads nowhere.
window.open = () => null;

window.addEventListener("DOMContentLoaded", () => {
  document.getElementById("again").onclick = () => location.reload();
  // Keys are for the terminal from its first screen on, without a click.
  const watch = new MutationObserver(() => {
    const keys = document.querySelector(".xterm-helper-textarea");
    if (keys && document.body.classList.contains("-first-byte")) {
      watch.disconnect();
      keys.focus();
    }
  });
  watch.observe(document.body, { attributeFilter: ["class"] });
});
