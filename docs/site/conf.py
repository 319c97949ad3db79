"""Settings of Sphinx. `docs/site/build` puts the documents where this is used."""

project = "Countersign"
copyright = "the authors of Countersign, Apache-2.0"
html_title = "Countersign"
extensions = ["myst_parser"]
root_doc = "index"
# Headings are linked by the names that forges give them.
myst_heading_anchors = 4
# Examples leave parts out with an ellipsis, and Sphinx has no lexer of its own for some settings.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_permalinks_icon = "#"
html_favicon = "icon.png"
html_logo = "icon.png"
pygments_style = "default"
pygments_dark_style = "github-dark"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2a3eb1", "color-brand-content": "#2a3eb1", "color-brand-visited": "#2a3eb1"},
    "dark_css_variables": {"color-brand-primary": "#aab6ff", "color-brand-content": "#aab6ff", "color-brand-visited": "#aab6ff"},
}
