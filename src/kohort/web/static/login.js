// Says why there is a page to log in.
const asked = new URLSearchParams(location.search);
for (const name of ["refused", "used"]) {
  const shown = document.getElementById(name);
  if (shown && asked.has(name)) shown.hidden = false;
}
