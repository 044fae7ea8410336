// SPDX-License-Identifier: Apache-2.0

package olmgitops_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/controllers"
	olmgitops "github.com/olmcore/olm/examples/gitops"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

var because = olmcore.Cause{Reason: "Test"}

// files returns the paths below a folder, sorted.
func files(t *testing.T, dir string) []string {
	var found []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			path, err = filepath.Rel(dir, path)
			found = append(found, filepath.ToSlash(path))
		}
		return err
	}))
	return found
}

func TestActionsBecomeFiles(t *testing.T) {
	dir := t.TempDir()
	var skipped []olmcore.Verb
	folder := &olmgitops.Folder{Dir: dir, Skipped: func(a olmcore.Action) {
		verb, _, _ := a.Describe()
		skipped = append(skipped, verb)
	}}
	do := func(a olmcore.Action) error { return folder.Do(t.Context(), a) }

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:a/b"}}
	require.NoError(t, do(olmcore.CreateOf(role, because)))
	require.True(t, apierrors.IsAlreadyExists(do(olmcore.CreateOf(role, because))))
	sub := &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "s", UID: "7", ResourceVersion: "3", Generation: 2, CreationTimestamp: metav1.Now()},
		Spec:       &v1alpha1.SubscriptionSpec{Package: "p", Channel: "c"},
		Status:     v1alpha1.SubscriptionStatus{CurrentCSV: "p.v1"},
	}
	for _, channel := range []string{"stable-long", "d"} { // the second is the shorter one
		after := sub.DeepCopy()
		after.Spec.Channel = channel
		require.NoError(t, do(olmcore.UpdateOf(sub, after, because)))
	}
	require.NoError(t, do(olmcore.UpdateStatusOf(sub, sub, because)))
	require.Equal(t, []string{"cluster/clusterrole.rbac.authorization.k8s.io_system%3Aa%2Fb.yaml", "ops/subscription.operators.coreos.com_s.yaml"}, files(t, dir))
	text, err := os.ReadFile(filepath.Join(dir, "ops", "subscription.operators.coreos.com_s.yaml"))
	require.NoError(t, err)
	require.Equal(t, `apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata:
  name: s
  namespace: ops
spec:
  channel: d
  name: p
  source: ""
  sourceNamespace: ""
`, string(text))

	require.NoError(t, do(olmcore.DeleteOf(sub, because)))
	require.True(t, apierrors.IsNotFound(do(olmcore.DeleteOf(sub, because))))
	require.Equal(t, []olmcore.Verb{olmcore.VerbUpdateStatus, olmcore.VerbDelete}, skipped)
	require.Error(t, do(nil))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, folder.Do(ended, olmcore.CreateOf(sub, because)), context.Canceled)
}

func TestAFolderThatCannotBeWrittenIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	err := (&olmgitops.Folder{Dir: file}).Do(t.Context(), olmcore.CreateOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}, because))
	require.Error(t, err)
	require.False(t, apierrors.IsAlreadyExists(err))
}

// export writes objects as kubectl get -o yaml does.
func export(t *testing.T, objects []olmcore.Object) []byte {
	list := map[string]any{"apiVersion": "v1", "kind": "List"}
	var items []any
	for _, o := range objects {
		m, err := olmcore.ToMap(o)
		require.NoError(t, err)
		items = append(items, m)
	}
	list["items"] = items
	data, err := yaml.Marshal(list)
	require.NoError(t, err)
	return data
}

func TestTheReaderOfAnExportKeepsTheContract(t *testing.T) {
	require.NoError(t, invariant.CheckReader(t.Context(), func(_ context.Context, objects []olmcore.Object) (olmcore.Reader, error) {
		read, err := olmgitops.Read(bytes.NewReader(export(t, objects)))
		if err != nil {
			return nil, err
		}
		return olmcore.NewSnapshot(read)
	}))
}

func TestReadSaysWhatItCannotRead(t *testing.T) {
	for text, want := range map[string]string{
		"kind: Pod": "document 1: invalid input: apiVersion is empty",
		"a: 1":      "document 1: invalid input: kind is empty",
		"{apiVersion: v1, kind: List, items: [{kind: Pod}]}":                        "document 1: items[0]: invalid input: apiVersion is empty",
		"---\n---\n{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n{x: [":    "document",
		"{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n- not\n- an object": "document 2",
	} {
		_, err := olmgitops.Read(strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
	}
	objects, err := olmgitops.Read(strings.NewReader("---\n\n---\n# nothing\n---\n{apiVersion: v1, kind: Pod, metadata: {name: a}}\n"))
	require.NoError(t, err)
	require.Len(t, objects, 1)
}

// TestApplyingTheFolderLeadsToRest plays the tool that applies the folder: export,
// plan, apply, until nothing is planned. Statuses are nobody's here, so only what
// does not wait for one is reached.
func TestApplyingTheFolderLeadsToRest(t *testing.T) {
	c := fake.NewCluster(time.Now())
	c.AutoCreateNamespaces = true
	require.NoError(t, c.AddNode("a", nil))
	require.NoError(t, c.Create(
		&v1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"},
			Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "registry.example.com/catalog:latest",
				GrpcPodConfig: &v1alpha1.GrpcPodConfig{SecurityContextConfig: v1alpha1.Restricted}},
		},
		&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"}},
	))
	var planned []string
	for round := range 5 {
		dir := t.TempDir()
		objects, err := olmgitops.Read(bytes.NewReader(export(t, c.Objects())))
		require.NoError(t, err)
		cluster, err := olmcore.NewSnapshot(objects)
		require.NoError(t, err)
		folder := &olmgitops.Folder{Dir: dir}
		for _, controller := range controllers.New(&controllers.Options{}).Controllers {
			keys, err := controller.Keys(t.Context(), cluster)
			require.NoError(t, err)
			for _, key := range keys {
				result, err := controller.Reconcile(t.Context(), cluster, key, c.Now(), nil)
				require.NoError(t, err)
				require.NoError(t, olmcore.Run(t.Context(), folder, result.Actions))
			}
		}
		if planned = files(t, dir); len(planned) == 0 {
			require.NotZero(t, round)
			require.True(t, slices.ContainsFunc(c.Objects(), func(o olmcore.Object) bool { return olmcore.GVKOf(o).Kind == "Pod" }))
			return
		}
		if apply(c, dir, planned) != nil { // a Pod comes before its ServiceAccount
			require.NoError(t, apply(c, dir, planned))
		}
		require.NoError(t, c.Settle())
	}
	t.Errorf("still planned: %q", planned)
}

// apply creates or replaces what the files hold, and goes on after an error.
func apply(c *fake.Cluster, dir string, paths []string) error {
	var failed []error
	for _, path := range paths {
		data, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		objects, err := olmgitops.Read(bytes.NewReader(data))
		if err != nil {
			return err
		}
		for _, o := range objects {
			err := c.Create(o)
			if apierrors.IsAlreadyExists(err) {
				err = c.Update(o)
			}
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
