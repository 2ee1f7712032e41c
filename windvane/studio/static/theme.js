// Applies the stored choice of light or dark before the first paint; the toggle is in main.js.
try {
  const stored = localStorage.getItem('windvane-theme');
  if (stored === 'light' || stored === 'dark') document.documentElement.dataset.theme = stored;
} catch { /* Storage may be forbidden; the system's choice holds then. */ }
