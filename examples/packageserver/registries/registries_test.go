// SPDX-License-Identifier: Apache-2.0

package registries_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/examples/packageserver/registries"
	"github.com/olmcore/olm/examples/registry"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/packages"
)

// catalog is a registry of so many packages with one bundle each.
type catalog struct {
	api.UnimplementedRegistryServer
	packages int
	// csv is what it sends of each head; gate, when set, hears of each read, and lets it go on.
	csv  string
	gate chan chan struct{}
}

func (c *catalog) ListBundles(_ *api.ListBundlesRequest, stream api.Registry_ListBundlesServer) error {
	if c.gate != nil {
		goOn := make(chan struct{})
		c.gate <- goOn
		<-goOn
	}
	for i := range c.packages {
		name := fmt.Sprintf("p%03d", i)
		if err := stream.Send(&api.Bundle{CsvName: name + ".v1", PackageName: name, ChannelName: "stable", BundlePath: "i", Version: "1.0.0"}); err != nil {
			return err
		}
	}
	return nil
}

func (c *catalog) GetPackage(_ context.Context, r *api.GetPackageRequest) (*api.Package, error) {
	return &api.Package{Name: r.GetName(), DefaultChannelName: "stable"}, nil
}

func (c *catalog) GetBundle(context.Context, *api.GetBundleRequest) (*api.Bundle, error) {
	return &api.Bundle{CsvJson: c.csv}, nil
}

func csvOf(description string) string {
	return `{"kind":"ClusterServiceVersion","spec":{"displayName":"x","description":"` + description + `"}}`
}

// listen serves a registry at an address of loopback, which is chosen when it is empty.
func listen(t testing.TB, r api.RegistryServer, address string) (string, *grpc.Server) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	server := grpc.NewServer()
	api.RegisterRegistryServer(server, r)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().String(), server
}

// world is Registries, with what they put, and what they log.
type world struct {
	*registries.Registries
	mu    sync.Mutex
	shown map[types.NamespacedName]packages.Catalog
	puts  int
	out   bytes.Buffer
}

func newWorld(t testing.TB, o registries.Options, limits registry.Options) *world {
	w := &world{shown: map[types.NamespacedName]packages.Catalog{}}
	connector, err := registry.NewConnector(limits)
	require.NoError(t, err)
	o.Connector, o.GlobalNamespace = connector, "olm"
	o.Put = func(key types.NamespacedName, c packages.Catalog) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.shown[key] = c
		w.puts++
	}
	o.Drop = func(key types.NamespacedName) {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.shown, key)
	}
	o.Log = slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	w.Registries, err = registries.New(o)
	require.NoError(t, err)
	t.Cleanup(w.Close)
	return w
}

func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

func (w *world) log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.String()
}

func (w *world) reads() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.puts
}

func (w *world) catalog(namespace, name string) []packages.PackageManifest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shown[types.NamespacedName{Namespace: namespace, Name: name}].Packages
}

func (w *world) know(namespace, name, address string) {
	source := &v1alpha1.CatalogSource{Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: address}}
	source.Namespace, source.Name, source.UID = namespace, name, "u"
	w.Know(source)
}

func (w *world) wait(t testing.TB) []string {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	unread := w.Wait(ctx)
	require.NoError(t, ctx.Err())
	return unread
}

// What a catalog, the catalogs of a namespace, and those of all namespaces but the global one show is bounded; what
// does not fit is cut, and named.
func TestCatalogsShareTheirRoom(t *testing.T) {
	const most = 1 << 20
	address, _ := listen(t, &catalog{packages: 4, csv: csvOf(strings.Repeat("x", 80_000))}, "")
	w := newWorld(t, registries.Options{MaxBytes: most}, registry.Options{})
	whole := func(namespace, name string) (count int) {
		for _, m := range w.catalog(namespace, name) {
			if m.Head().CurrentCSVDesc.DisplayName != "" {
				count++
			}
		}
		return count
	}
	room := func(of string, bytes int) string {
		return fmt.Sprintf("what is shown of the catalogs of %s may take %d bytes of memory together: have fewer, or raise the limit (MaxBytes, --shown-max-bytes)", of, bytes)
	}
	for _, c := range []struct {
		namespace, name string
		whole           int
		said            string
	}{
		{"a", "1", 4, ""}, {"a", "2", 1, room("namespace a", most/2)}, {"b", "1", 4, ""}, {"c", "1", 4, ""}, {"d", "1", 4, ""},
		{"e", "1", 4, ""}, {"f", "1", 1, room("all namespaces but olm", 2*most)},
		{"olm", "1", 4, ""}, {"olm", "2", 4, ""}, {"olm", "3", 4, ""}, {"olm", "4", 4, ""}, {"olm", "5", 4, ""}, {"olm", "6", 2, room("namespace olm", 2*most)},
	} {
		logged := len(w.log())
		w.know(c.namespace, c.name, address)
		require.Empty(t, w.wait(t))
		key := c.namespace + "/" + c.name
		require.Equal(t, c.whole, whole(c.namespace, c.name), key)
		said := w.log()[logged:]
		if c.said == "" {
			require.NotContains(t, said, "TooLarge", key)
		} else {
			require.Contains(t, said, fmt.Sprintf("%q catalog=%s reason=TooLarge", c.said, key))
			require.Contains(t, said, "is not described: what is shown of the catalog has", key)
		}
	}
	w.Know(&v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "1"}})
	require.Empty(t, w.catalog("a", "1"), "it is gone, and so is what was shown of it")
	w.know("e", "2", address)
	require.Empty(t, w.wait(t))
	require.Equal(t, 1, whole("e", "2"), "there is room again")
}

// One catalog is read at a time: those of the global namespace before others.
func TestOneCatalogIsReadAtATime(t *testing.T) {
	gate := make(chan chan struct{})
	w := newWorld(t, registries.Options{}, registry.Options{})
	begin := func(namespace, name string, packages int) {
		address, _ := listen(t, &catalog{packages: packages, gate: gate}, "")
		w.know(namespace, name, address)
	}
	next := func() {
		goOn := <-gate
		select {
		case <-gate:
			t.Error("two are read at once")
		case <-time.After(300 * time.Millisecond):
		}
		close(goOn)
	}
	begin("team", "a", 1)
	first := <-gate
	begin("team", "b", 1)
	time.Sleep(200 * time.Millisecond) // it waits for its turn
	begin("olm", "c", 1)
	time.Sleep(200 * time.Millisecond)
	close(first)
	next()
	require.Eventually(t, func() bool { return len(w.catalog("olm", "c")) == 1 }, 10*time.Second, 10*time.Millisecond)
	require.Empty(t, w.catalog("team", "b"))
	next()
	require.Empty(t, w.wait(t))
	require.Len(t, w.catalog("team", "b"), 1)
}

// Why a catalog is not read, what is left out of it, and that it is read again is logged with its name, once for each
// change.
func TestProblemsAreLogged(t *testing.T) {
	r := &catalog{packages: 2}
	address, server := listen(t, r, "")
	server.Stop()
	w := newWorld(t, registries.Options{}, registry.Options{MaxBytes: 10_000})
	w.know("team", "a", address)
	logged := func(text string, times int) func() bool {
		return func() bool { return strings.Count(w.log(), text) == times }
	}
	const refused = `level=WARN msg="the catalog is not read: connection refused: no Pod of the Service is ready, or nothing listens at the port" catalog=team/a shown=false`
	require.Eventually(t, logged(refused, 1), 10*time.Second, 10*time.Millisecond)
	_, server = listen(t, r, address)
	const none = `level=INFO msg="the catalog has no description of p000.v1" catalog=team/a reason=NotDescribed path="packages[\"p000\"].bundles[\"p000.v1\"]"`
	require.Eventually(t, logged(none, 1), 20*time.Second, 10*time.Millisecond)
	require.Contains(t, w.log(), `level=INFO msg="the catalog is read" catalog=team/a packages=2`)
	server.Stop()
	require.Eventually(t, logged(strings.Replace(refused, "shown=false", "shown=true", 1), 1), 20*time.Second, 10*time.Millisecond)
	require.Len(t, w.catalog("team", "a"), 2, "what was read is shown on")
	r.packages = 100
	_, server = listen(t, r, address)
	const large = `msg="the catalog is not read: the catalog is larger than 10000 bytes: raise the limit (MaxBytes, --registry-max-bytes), or serve less" catalog=team/a shown=true`
	require.Eventually(t, logged(large, 1), 20*time.Second, 10*time.Millisecond)
	require.Equal(t, 1, strings.Count(w.log(), refused))
	require.Equal(t, 1, strings.Count(w.log(), none))
}

// Waiting ends when all that can be read was; who waits no longer learns which were not.
func TestWaitingForTheFirstRead(t *testing.T) {
	address, _ := listen(t, &catalog{packages: 1}, "")
	dead, server := listen(t, &catalog{}, "")
	server.Stop()
	w := newWorld(t, registries.Options{Files: map[types.NamespacedName]bool{{Namespace: "olm", Name: "file"}: true}}, registry.Options{})
	w.know("olm", "a", address)
	w.know("olm", "b", address)
	w.know("olm", "file", dead)
	require.Empty(t, w.wait(t))
	require.Len(t, w.catalog("olm", "b"), 1)
	w.know("team", "none", "")
	require.Equal(t, []string{"team/none: it has no registry to ask, see the status of the CatalogSource"}, w.wait(t))
	w.know("team", "dead", dead)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.Equal(t, []string{"team/dead: connection refused: no Pod of the Service is ready, or nothing listens at the port",
		"team/none: it has no registry to ask, see the status of the CatalogSource"}, w.Wait(ctx))
	require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
}

func TestWrongOptions(t *testing.T) {
	_, err := registries.New(registries.Options{})
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
}
