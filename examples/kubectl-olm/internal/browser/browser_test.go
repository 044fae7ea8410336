// SPDX-License-Identifier: Apache-2.0

//go:build chromium

package browser_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/command"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/page"
	"github.com/olmcore/olm/examples/kubectl-olm/report"
)

const testdata = "../../testdata/"

// pages are what is opened, with texts that are seen there.
var pages = map[string]struct {
	args  string
	texts []string
	nodes int
}{
	"status": {
		"status -f " + testdata + "world.yaml --complete -o html --catalog olm/community=" + testdata + "catalog.yaml",
		[]string{"5 Subscriptions: 1 Failed, 1 Stuck", "ImagePullBackOff", "Delete InstallPlan apps/install-44444"}, 6,
	},
	"path": {
		"path backup -f " + testdata + "world.yaml --complete -o html --catalog olm/community=" + testdata + "catalog.yaml",
		[]string{"The way of tools/backup", "It loses snapshots that are larger than 2 GiB."}, 4,
	},
	"catalog": {"catalog backup -o html --catalog olm/community=" + testdata + "catalog.yaml", []string{"Upgrades of package backup", "3.0.0-rc.1, head"}, 5},
	"large":   {"catalog ladder -o html --catalog olm/community=" + testdata + "ladder.yaml", []string{"40.0.0, head"}, 40},
	"approve": {
		"approve vault --dry-run -f " + testdata + "upgrade.yaml --complete -o html",
		[]string{"What approving InstallPlan ops/install-", "get,list secrets", "stored as v2 instead of v1"}, 2,
	},
}

// rendered is the HTML that a command writes.
func rendered(t *testing.T, args string) string {
	var out, errs bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs}
	clock := func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }
	require.Zero(t, command.Run(t.Context(), strings.Fields(args), streams, clock), errs.String())
	return out.String()
}

// site serves a page, and a frame of some width around it that measures it. It notes what else is asked for.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newSite(t *testing.T, page string) *site {
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/page":
			fmt.Fprint(w, page)
		case "/frame":
			fmt.Fprintf(w, frame, r.URL.Query().Get("width"))
		default:
			s.mu.Lock()
			defer s.mu.Unlock()
			s.asked = append(s.asked, r.URL.Path)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// frame shows the page in a width, and writes what it measures.
const frame = `<!DOCTYPE html><title>frame</title><link rel="icon" href="data:,"><pre id="measured"></pre><iframe id="page" src="/page" style="border:0;width:%spx;height:900px"></iframe><script>
document.getElementById('page').onload = function () {
	const d = this.contentDocument, box = e => { const b = e.getBoundingClientRect(); return {x: b.x, y: b.y, width: b.width, height: b.height} }
	const graphs = [...d.querySelectorAll('svg')].map(g => ({
		nodes: [...g.querySelectorAll('.node')].map(n => ({rect: box(n.querySelector('rect')), texts: [...n.querySelectorAll('text')].map(box), name: n.textContent})),
		labels: [...g.querySelectorAll('.label')].map(box), frame: box(g)}))
	document.getElementById('measured').textContent = JSON.stringify({graphs: graphs, scrollWidth: d.documentElement.scrollWidth, width: d.documentElement.clientWidth, text: d.body.innerText, scripts: d.scripts.length})
}
</script>`

type box struct{ X, Y, Width, Height float64 }

func (b box) overlaps(o box) bool {
	return b.X < o.X+o.Width && o.X < b.X+b.Width && b.Y < o.Y+o.Height && o.Y < b.Y+b.Height
}

func (b box) holds(o box) bool {
	const most = 0.5
	return o.X >= b.X-most && o.Y >= b.Y-most && o.X+o.Width <= b.X+b.Width+most && o.Y+o.Height <= b.Y+b.Height+most
}

// measured is what the frame writes.
type measured struct {
	Graphs []struct {
		Nodes []struct {
			Rect  box
			Texts []box
			Name  string
		}
		Labels []box
		Frame  box
	}
	ScrollWidth, Width float64
	Text               string
	Scripts            int
}

// chromium runs the browser, which reaches nothing but the site.
func chromium(t *testing.T, args ...string) (stdout, stderr string) {
	var name string
	for _, candidate := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(candidate); err == nil && name == "" {
			name = path
		}
	}
	require.NotEmpty(t, name, "there is no Chromium: internal/browser/install-chromium installs it")
	all := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", "--disable-extensions", "--disable-background-networking",
		"--user-data-dir=" + t.TempDir(), "--proxy-server=127.0.0.1:1", "--proxy-bypass-list=127.0.0.1", "--virtual-time-budget=5000", "--enable-logging=stderr",
	}, args...)
	cmd := exec.CommandContext(t.Context(), name, all...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Run(), errs.String())
	return out.String(), errs.String()
}

// said are the lines of the console.
func said(log string) (lines []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "CONSOLE") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

var result = regexp.MustCompile(`(?s)<pre id="measured">(.*?)</pre>`)

func measure(t *testing.T, s *site, width int) (m measured, console []string) {
	dom, log := chromium(t, "--window-size=1600,1200", "--dump-dom", fmt.Sprintf("%s/frame?width=%d", s.URL, width))
	found := result.FindStringSubmatch(dom)
	require.NotNil(t, found, dom)
	require.NoError(t, json.Unmarshal([]byte(html.UnescapeString(found[1])), &m), found[1])
	return m, said(log)
}

func TestPagesAreShown(t *testing.T) {
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, rendered(t, page.args))
			for _, width := range []int{360, 1200} {
				m, console := measure(t, s, width)
				require.Empty(t, console)
				require.Zero(t, m.Scripts)
				require.LessOrEqual(t, m.ScrollWidth, m.Width, "the page does not move sideways at a width of %d", width)
				for _, text := range page.texts {
					require.Contains(t, m.Text+strings.Join(names(m), " "), text)
				}
				requireApart(t, m, page.nodes)
			}
			require.Empty(t, s.asked, "nothing else is loaded")
		})
	}
}

func names(m measured) (all []string) {
	for _, g := range m.Graphs {
		for _, n := range g.Nodes {
			all = append(all, n.Name)
		}
	}
	return all
}

// requireApart demands that boxes hold their texts, and that neither boxes nor the labels of lines lie on one another.
func requireApart(t *testing.T, m measured, nodes int) {
	seen := 0
	for _, g := range m.Graphs {
		for i, n := range g.Nodes {
			seen++
			require.True(t, g.Frame.holds(n.Rect), "%s is outside", n.Name)
			require.NotEmpty(t, n.Texts)
			for _, text := range n.Texts {
				require.True(t, text.Width == 0 || n.Rect.holds(text), "%s does not fit: %v in %v", n.Name, text, n.Rect)
			}
			for _, other := range g.Nodes[i+1:] {
				require.False(t, n.Rect.overlaps(other.Rect), "%s lies on %s", n.Name, other.Name)
			}
			for _, label := range g.Labels {
				require.False(t, n.Rect.overlaps(label), "a label lies on %s", n.Name)
			}
		}
	}
	require.Equal(t, nodes, seen)
}

// TestHostileTextsStayInTheirPlaces: whatever tenants write.
func TestHostileTextsStayInTheirPlaces(t *testing.T) {
	texts := []string{
		strings.Repeat("W", 60), strings.Repeat("日", 60), strings.Repeat("😀", 60), strings.Repeat("\u202e", 20), strings.Repeat("ﷺ", 5), "\x1b[2J", "</title><script>alert(1)</script>",
		strings.Repeat("a", 5000), "", " ", strings.Repeat("m.w-%@", 9),
	}
	g := page.Graph{Title: strings.Repeat("t", 500)}
	var all []report.Subscription
	for i, s := range texts {
		g.Nodes = append(g.Nodes, page.Node{ID: fmt.Sprint(i), Label: s, Note: texts[len(texts)-1-i]})
		g.Edges = append(g.Edges, page.Edge{From: fmt.Sprint(i / 2), To: fmt.Sprint(i)})
		r := report.Report{Phase: s, Reason: s, Message: s, Advice: s, Object: &report.Object{Kind: s, Name: s}}
		all = append(all, report.Subscription{Namespace: s, Name: s, Channel: s, InstalledCSV: s, CurrentCSV: s + "2", Report: r})
	}
	var b bytes.Buffer
	require.NoError(t, page.Status(&b, report.Status{Subscriptions: all, NotRead: texts}, strings.Join(texts, " "), []page.Graph{g}))
	s := newSite(t, b.String())
	for _, width := range []int{360, 1200} {
		m, console := measure(t, s, width)
		require.Empty(t, console)
		require.Zero(t, m.Scripts)
		require.LessOrEqual(t, m.ScrollWidth, m.Width)
		requireApart(t, m, len(texts))
	}
	require.Empty(t, s.asked)
}

// TestTheMeasureFindsWhatItIsFor: a page that is as none of ours.
func TestTheMeasureFindsWhatItIsFor(t *testing.T) {
	s := newSite(t, `<!DOCTYPE html><body><img src="/picture.png"><div style="width:2000px">wide</div><script>console.error("wrong"); undefined.x</script>`)
	m, console := measure(t, s, 360)
	require.Len(t, console, 2)
	require.Greater(t, m.ScrollWidth, m.Width)
	require.Equal(t, []string{"/picture.png"}, s.asked)
	require.Equal(t, 1, m.Scripts)
}

// TestThePolicyOfAPageKeepsOthersOut: were a text of a tenant not escaped, nothing would come of it.
func TestThePolicyOfAPageKeepsOthersOut(t *testing.T) {
	page := rendered(t, pages["path"].args)
	s := newSite(t, strings.Replace(page, "<main>", `<main><img src="/picture.png"><script>document.body.innerHTML = "taken"</script><link rel="stylesheet" href="/style.css">`, 1))
	m, console := measure(t, s, 1200)
	require.Len(t, console, 3, "each is refused")
	require.Contains(t, m.Text, "The way of tools/backup")
	require.Empty(t, s.asked)
}

// TestPicturesAreNotBlank: neither light nor dark, neither wide nor narrow.
func TestPicturesAreNotBlank(t *testing.T) {
	folder := os.Getenv("OLMCORE_SCREENSHOTS")
	if folder == "" {
		folder = t.TempDir()
	}
	for name, page := range pages {
		s := newSite(t, rendered(t, page.args))
		for scheme, setting := range map[string]string{"light": "preferredColorScheme=1", "dark": "preferredColorScheme=0"} {
			for _, width := range []int{500, 1200} {
				file := filepath.Join(folder, fmt.Sprintf("%s-%s-%d.png", name, scheme, width))
				chromium(t, "--blink-settings="+setting, fmt.Sprintf("--window-size=%d,1400", width), "--screenshot="+file, s.URL+"/page")
				colors, brightness := look(t, file)
				require.Greater(t, colors, 20, file)
				require.Equal(t, scheme == "light", brightness > 0.5, "%s: brightness %.2f", file, brightness)
			}
		}
	}
}

// look counts the colours of a picture, and says how bright it is, from 0 to 1.
func look(t *testing.T, file string) (colors int, brightness float64) {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	picture, err := png.Decode(f)
	require.NoError(t, err)
	seen := map[[3]uint32]bool{}
	sum := 0.0
	bounds := picture.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			r, g, b, _ := picture.At(x, y).RGBA()
			seen[[3]uint32{r, g, b}] = true
			sum += float64(r+g+b) / 3 / 0xffff
		}
	}
	return len(seen), sum / float64(bounds.Dx()*bounds.Dy())
}
