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

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/examples/controllerruntime/olmruntime"
	"github.com/olmcore/olm/examples/dynamic/olmdynamic"
	"github.com/olmcore/olm/examples/gitops/olmgitops"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/internal/controlplane"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
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

// The three adapters keep the contracts of Executor and Reader against a real API server.
func TestTheAdaptersKeepTheirContracts(t *testing.T) {
	plane, err := controlplane.Start(controlplane.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, plane.Stop()) })
	config := strict(plane.Config)
	live, err := olmdynamic.New(config)
	require.NoError(t, err)
	for _, name := range []string{"runtime", "dynamic"} {
		require.NoError(t, live.Do(t.Context(), olmcore.CreateOf(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, asUser)))
	}
	t.Run("controllerruntime, Executor", func(t *testing.T) {
		mgr, err := newCached(t.Context(), config)
		require.NoError(t, err)
		require.NoError(t, invariant.CheckExecutor(t.Context(), mgr, mgr.Cluster, "runtime"), "a cache is late")
	})
	t.Run("dynamic, Executor", func(t *testing.T) {
		require.NoError(t, invariant.CheckExecutor(t.Context(), live, live, "dynamic"))
	})
	t.Run("gitops, Executor", func(t *testing.T) {
		observed, err := olmcore.NewSnapshot(nil, olmcore.Everything)
		require.NoError(t, err)
		plan := olmgitops.New(observed)
		require.NoError(t, invariant.CheckExecutor(t.Context(), plan, plan, "gitops"))
	})
	t.Run("the checks before a start", func(t *testing.T) { requirePreflight(t, plane) })
	// The objects are the same for all Readers: they are created once.
	var created []olmcore.Object
	create := func(ctx context.Context, objects []olmcore.Object) error {
		if created != nil {
			return nil
		}
		for _, o := range objects {
			if err := live.Do(ctx, olmcore.CreateOf(o, asUser)); err != nil {
				return err
			}
		}
		created = objects
		return nil
	}
	for name, newReader := range map[string]func(ctx context.Context) (olmcore.Reader, error){
		"controllerruntime": func(ctx context.Context) (olmcore.Reader, error) { return newCached(ctx, config) },
		"dynamic":           func(context.Context) (olmcore.Reader, error) { return live, nil },
		"gitops, an export": func(ctx context.Context) (olmcore.Reader, error) { return export(ctx, live, created) },
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
	t.Run("gitops, what it writes is accepted", func(t *testing.T) { requireAccepted(t, config, live, created) })
}

// newCached returns a manager of which the caches run, and no controller: another one is elected.
func newCached(ctx context.Context, config *rest.Config) (*olmruntime.Manager, error) {
	mgr, err := olmruntime.New(config, ctrl.Options{
		Metrics:        server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionResourceLockInterface: taken{},
	}, olmruntime.Options{})
	if err != nil {
		return nil, err
	}
	synced := make(chan struct{})
	if err := mgr.Add(unelected(func(context.Context) error { close(synced); return nil })); err != nil {
		return nil, err
	}
	failed := make(chan error, 1)
	go func() { failed <- mgr.Start(ctx) }()
	select {
	case <-synced: // what needs no election starts after the caches
		return mgr, nil
	case err := <-failed:
		return nil, err
	}
}

type unelected func(ctx context.Context) error

func (u unelected) Start(ctx context.Context) error { return u(ctx) }
func (unelected) NeedLeaderElection() bool          { return false }

// taken is a lock that another manager holds.
type taken struct{ resourcelock.Interface }

func (taken) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record := resourcelock.LeaderElectionRecord{HolderIdentity: "another", LeaseDurationSeconds: 3600, RenewTime: metav1.Now()}
	data, err := json.Marshal(record)
	return &record, data, err
}

func (taken) Identity() string { return "this" }
func (taken) Describe() string { return "a lock" }

// export reads objects as a person would with kubectl, into a Snapshot.
func export(ctx context.Context, live olmcore.Reader, objects []olmcore.Object) (*olmcore.Snapshot, error) {
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
	found, err := read(text.Bytes())
	if err != nil {
		return nil, err
	}
	return olmcore.NewSnapshot(found, olmcore.Everything)
}

func read(text []byte) ([]olmcore.Object, error) {
	found, err := decode.Read("text", bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return decode.Distinct(found)
}

// requireAccepted: an API server takes each file that a plan writes, whole
// manifests and orders, as kubectl create and replace send them.
func requireAccepted(t *testing.T, config *rest.Config, live *olmdynamic.Cluster, objects []olmcore.Object) {
	dir := t.TempDir()
	observed, err := export(t.Context(), live, objects)
	require.NoError(t, err)
	plan := olmgitops.New(observed)
	for _, o := range objects {
		o = o.DeepCopyObject().(olmcore.Object)
		o.SetName(o.GetName() + "-again")
		require.NoError(t, plan.Do(t.Context(), olmcore.CreateOf(o, asUser)))
	}
	before, err := olmcore.Get[*v1alpha1.Subscription](t.Context(), observed, objects[2].GetNamespace(), objects[2].GetName())
	require.NoError(t, err)
	after := before.DeepCopy()
	after.Status.State, after.Status.LastUpdated = v1alpha1.SubscriptionStateAtLatest, olmcore.Timestamp(before.CreationTimestamp.Time)
	require.NoError(t, plan.Do(t.Context(), olmcore.UpdateStatusOf(before, after, asUser)))
	require.NoError(t, plan.Write(dir))

	files := 0
	require.NoError(t, filepath.WalkDir(filepath.Join(dir, "apply"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found, err := read(data)
		for _, o := range found {
			files++
			require.NoError(t, live.Do(t.Context(), olmcore.CreateOf(o, asUser)), path)
		}
		return err
	}))
	require.Len(t, objects, files)

	text, err := os.ReadFile(filepath.Join(dir, "status.yaml"))
	require.NoError(t, err)
	order := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(text, &order.Object))
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	subscriptions := client.Resource(v1alpha1.SchemeGroupVersion.WithResource("subscriptions")).Namespace(before.Namespace)
	_, err = subscriptions.UpdateStatus(t.Context(), order, metav1.UpdateOptions{})
	require.NoError(t, err)
	reported, err := olmcore.Get[*v1alpha1.Subscription](t.Context(), live, before.Namespace, before.Name)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(after.Status, reported.Status))
	require.Equal(t, before.Spec, reported.Spec)
	_, err = subscriptions.UpdateStatus(t.Context(), order, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "the order was for another version: %v", err)
}
