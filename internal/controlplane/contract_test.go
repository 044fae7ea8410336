// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/olmcore/olm/controllers"
	olmruntime "github.com/olmcore/olm/examples/controllerruntime"
	olmdynamic "github.com/olmcore/olm/examples/dynamic"
	olmgitops "github.com/olmcore/olm/examples/gitops"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/internal/controlplane"
	"github.com/olmcore/olm/olmcore"
)

// strict makes the API server validate every write of a client strictly.
func strict(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return strictTransport{next} })
	return config
}

type strictTransport struct{ next http.RoundTripper }

func (s strictTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		r = r.Clone(r.Context())
		query := r.URL.Query()
		query.Set("fieldValidation", "Strict")
		r.URL.RawQuery = query.Encode()
	}
	return s.next.RoundTrip(r)
}

// The three adapters keep the contracts of Executor and Reader against a real
// API server.
func TestTheAdaptersKeepTheirContracts(t *testing.T) {
	plane, err := controlplane.Start(controlplane.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, plane.Stop()) })
	config := strict(plane.Config)
	dynamic, err := olmdynamic.New(config)
	require.NoError(t, err)
	for _, name := range []string{"runtime", "dynamic"} {
		require.NoError(t, dynamic.Do(t.Context(), olmcore.CreateOf(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, asUser)))
	}
	t.Run("controllerruntime, Executor", func(t *testing.T) {
		mgr, err := newCached(t.Context(), config)
		require.NoError(t, err)
		require.NoError(t, invariant.CheckExecutor(t.Context(), mgr, mgr.Cluster, "runtime"), "a cache is late")
	})
	t.Run("dynamic, Executor", func(t *testing.T) {
		require.NoError(t, invariant.CheckExecutor(t.Context(), dynamic, dynamic, "dynamic"))
	})
	// The objects are the same for all Readers: they are created once.
	var created []olmcore.Object
	create := func(ctx context.Context, objects []olmcore.Object) error {
		if created != nil {
			return nil
		}
		for _, o := range objects {
			if err := dynamic.Do(ctx, olmcore.CreateOf(o, asUser)); err != nil {
				return err
			}
		}
		created = objects
		return nil
	}
	for name, newReader := range map[string]func(ctx context.Context) (olmcore.Reader, error){
		"controllerruntime": func(ctx context.Context) (olmcore.Reader, error) { return newCached(ctx, config) },
		"dynamic":           func(context.Context) (olmcore.Reader, error) { return dynamic, nil },
		"gitops, an export": func(ctx context.Context) (olmcore.Reader, error) { return export(ctx, dynamic, created) },
	} {
		t.Run(name+", Reader", func(t *testing.T) {
			require.NoError(t, invariant.CheckReader(t.Context(), func(ctx context.Context, objects []olmcore.Object) (olmcore.Reader, error) {
				if err := create(ctx, objects); err != nil {
					return nil, err
				}
				return newReader(ctx)
			}))
		})
	}
	t.Run("gitops, what it writes is accepted", func(t *testing.T) { requireAccepted(t, dynamic, created) })
}

// newCached returns a manager of which nothing but the cache runs.
func newCached(ctx context.Context, config *rest.Config) (*olmruntime.Manager, error) {
	mgr, err := olmruntime.New(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}}, controllers.Options{}, nil)
	if err != nil {
		return nil, err
	}
	go func() { _ = mgr.GetCache().Start(ctx) }()
	mgr.GetCache().WaitForCacheSync(ctx)
	return mgr, nil
}

// export reads objects as a person would with kubectl, into a Snapshot.
func export(ctx context.Context, live olmcore.Reader, objects []olmcore.Object) (olmcore.Reader, error) {
	var text bytes.Buffer
	for _, o := range objects {
		got, err := live.Get(ctx, olmcore.GVKOf(o), o.GetNamespace(), o.GetName())
		if err != nil {
			return nil, err
		}
		m, err := olmcore.ToMap(got)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}
		text.WriteString("---\n")
		text.Write(append(data, '\n'))
	}
	read, err := olmgitops.Read(&text)
	if err != nil {
		return nil, err
	}
	return olmcore.NewSnapshot(read)
}

// requireAccepted: an API server takes each file that gitops writes.
func requireAccepted(t *testing.T, live olmcore.Executor, objects []olmcore.Object) {
	dir := t.TempDir()
	folder := &olmgitops.Folder{Dir: dir}
	for _, o := range objects {
		require.NoError(t, folder.Do(t.Context(), olmcore.CreateOf(o, asUser)))
	}
	files := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read, err := olmgitops.Read(bytes.NewReader(data))
		if err != nil {
			return err
		}
		for _, o := range read {
			files++
			o.SetName(o.GetName() + "-again")
			require.NoError(t, live.Do(t.Context(), olmcore.CreateOf(o, asUser)), path)
		}
		return nil
	}))
	require.Len(t, objects, files)
}
