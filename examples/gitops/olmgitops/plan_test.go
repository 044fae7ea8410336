// SPDX-License-Identifier: Apache-2.0

package olmgitops_test

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/examples/gitops/olmgitops"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// header is what marks the files of plans.
const header = "# Written by a plan. The next one may change or remove it.\n"

var because = olmcore.Cause{Reason: "Test"}

// newPlan returns an empty plan for a cluster with these objects.
func newPlan(t *testing.T, objects ...olmcore.Object) *olmgitops.Plan {
	observed, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	return olmgitops.New(observed)
}

func TestTheContracts(t *testing.T) {
	p := newPlan(t)
	require.NoError(t, invariant.CheckExecutor(t.Context(), p, p, "ns"))
	dir := t.TempDir()
	require.NoError(t, p.Write(dir))
	require.Empty(t, written(t, dir), "nothing differs in the end")

	for name, read := range map[string]func([]olmcore.Object) (*olmcore.Snapshot, error){
		"what is planned": func(objects []olmcore.Object) (*olmcore.Snapshot, error) {
			p := newPlan(t)
			for _, o := range objects {
				if err := p.Do(t.Context(), olmcore.CreateOf(o, because)); err != nil {
					return nil, err
				}
			}
			return p.Snapshot, nil
		},
		"an export": func(objects []olmcore.Object) (*olmcore.Snapshot, error) {
			read, err := decode.Read("export", bytes.NewReader(export(t, objects)))
			require.NoError(t, err)
			distinct, err := decode.Distinct(read)
			require.NoError(t, err)
			return olmcore.NewSnapshot(distinct, olmcore.Everything)
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, invariant.CheckReader(t.Context(), func(_ context.Context, objects []olmcore.Object) (olmcore.Reader, error) {
				return read(objects)
			}))
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.Do(ended, olmcore.CreateOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, because)), context.Canceled)
	require.Error(t, p.Do(t.Context(), nil))
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

// written returns the files below a folder.
func written(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		path, err = filepath.Rel(dir, path)
		files[filepath.ToSlash(path)] = string(text)
		return err
	}))
	return files
}

func observed(name string) *v1alpha1.Subscription {
	return &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name, UID: "7", ResourceVersion: "3", Generation: 2, CreationTimestamp: metav1.Now()},
		Spec:       &v1alpha1.SubscriptionSpec{Package: "p", Channel: "c"},
		Status:     v1alpha1.SubscriptionStatus{CurrentCSV: "p.v1"},
	}
}

func TestAPlanIsWhatDiffers(t *testing.T) {
	changed, reported, both, ended, deleted := observed("changed"), observed("reported"), observed("both"), observed("ended"), observed("deleted")
	ended.DeletionTimestamp, ended.Finalizers = new(metav1.Now()), []string{"example.com/held"}
	p := newPlan(t, changed, reported, both, ended, deleted, observed("left-alone"))
	update := func(s *v1alpha1.Subscription, change func(*v1alpha1.Subscription)) olmcore.Action {
		after := s.DeepCopy()
		change(after)
		return olmcore.UpdateOf(s, after, because)
	}
	toD := func(s *v1alpha1.Subscription) { s.Spec.Channel = "d" }
	status := func(s *v1alpha1.Subscription) olmcore.Action {
		after := s.DeepCopy()
		after.Status.CurrentCSV = "p.v2"
		return olmcore.UpdateStatusOf(s, after, because)
	}
	for _, a := range []olmcore.Action{
		olmcore.CreateOf(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:a/b"}}, because),
		olmcore.CreateOf(&v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "new"}, Spec: &v1alpha1.SubscriptionSpec{Package: "p", Channel: "d"}}, because),
		update(changed, toD), status(reported), update(both, toD), olmcore.DeleteOf(deleted, because),
		update(ended, func(s *v1alpha1.Subscription) { s.Finalizers = nil }),
	} {
		require.NoError(t, p.Do(t.Context(), a))
	}
	again, err := olmcore.Get[*v1alpha1.Subscription](t.Context(), p, "ops", "both")
	require.NoError(t, err)
	require.NoError(t, p.Do(t.Context(), status(again)))

	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "apply", "ops"), 0o700))
	for _, old := range []string{"ended", "deleted", "collected", "left-alone"} { // manifests of an earlier plan
		path := filepath.Join(dir, "apply/ops/subscription.operators.coreos.com_"+old+".yaml")
		require.NoError(t, os.WriteFile(path, []byte(header+"old"), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "apply/ops/kustomization.yaml"), []byte("the user's own"), 0o600))
	require.NoError(t, p.Write(dir))
	manifestOf := func(name string) string {
		return header + "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata:\n  name: " + name +
			"\n  namespace: ops\nspec:\n  channel: d\n  name: p\n  source: \"\"\n  sourceNamespace: \"\"\n"
	}
	orderOf := func(name, rest string) string {
		return "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata:\n  name: " + name +
			"\n  namespace: ops\n  resourceVersion: \"3\"\n  uid: \"7\"\n" + rest
	}
	require.Equal(t, map[string]string{
		"apply/cluster/clusterrole.rbac.authorization.k8s.io_system%3Aa%2Fb.yaml": header + "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: system:a/b\nrules: null\n",
		"apply/ops/subscription.operators.coreos.com_both.yaml":                   manifestOf("both"),
		"apply/ops/subscription.operators.coreos.com_changed.yaml":                manifestOf("changed"),
		"apply/ops/subscription.operators.coreos.com_new.yaml":                    manifestOf("new"),
		"apply/ops/subscription.operators.coreos.com_left-alone.yaml":             header + "old",
		"apply/ops/kustomization.yaml":                                            "the user's own",
		"delete.yaml":                                                             header + orderOf("deleted", ""),
		"replace.yaml":                                                            header + orderOf("ended", "spec:\n  channel: c\n  name: p\n  source: \"\"\n  sourceNamespace: \"\"\n"),
		"status.yaml":                                                             header + orderOf("both", "status:\n  currentCSV: p.v2\n  lastUpdated: null\n") + "---\n" + orderOf("reported", "status:\n  currentCSV: p.v2\n  lastUpdated: null\n"),
	}, written(t, dir))

	require.NoError(t, newPlan(t, changed).Write(dir))
	files := slices.Sorted(maps.Keys(written(t, dir)))
	require.Equal(t, []string{"apply/ops/kustomization.yaml", "apply/ops/subscription.operators.coreos.com_changed.yaml"}, files, "orders of an earlier plan do not stay")
}

// TestWhatIsPlannedIsNotPlannedOver: of two changes of what was observed the second
// is refused, instead of losing the first.
func TestWhatIsPlannedIsNotPlannedOver(t *testing.T) {
	s := observed("s")
	p := newPlan(t, s)
	first, second := s.DeepCopy(), s.DeepCopy()
	first.Labels, second.Annotations = map[string]string{"first": "yes"}, map[string]string{"second": "yes"}
	require.NoError(t, p.Do(t.Context(), olmcore.UpdateOf(s, first, because)))
	require.ErrorIs(t, olmcore.Run(t.Context(), p, []olmcore.Action{olmcore.UpdateOf(s, second, because)}), olmcore.ErrStale)
	planned, err := olmcore.Get[*v1alpha1.Subscription](t.Context(), p, "ops", "s")
	require.NoError(t, err)
	require.Equal(t, first.Labels, planned.Labels)
	require.Empty(t, s.Labels, "what was observed is left alone")

	// Another incarnation takes the place of one that is deleted.
	p = newPlan(t, s)
	require.NoError(t, p.Do(t.Context(), olmcore.DeleteOf(s, because)))
	require.NoError(t, p.Do(t.Context(), olmcore.CreateOf(&v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "s"}}, because)))
	require.True(t, apierrors.IsNotFound(p.Do(t.Context(), olmcore.DeleteOf(s, because))))
	dir := t.TempDir()
	require.NoError(t, p.Write(dir))
	files := written(t, dir)
	require.Contains(t, files, "delete.yaml")
	require.Contains(t, files, "apply/ops/subscription.operators.coreos.com_s.yaml")
}

func TestAFolderThatCannotBeWrittenIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	p := newPlan(t)
	require.NoError(t, p.Do(t.Context(), olmcore.CreateOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}, because)))
	require.Error(t, p.Write(file))
}

// TestPrivateKeysAreRefused: neither the key of a certificate nor that of one which is to follow, which is how each
// begins.
func TestPrivateKeysAreRefused(t *testing.T) {
	for name, secret := range map[string]*corev1.Secret{
		"in use":    {Data: map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k")}},
		"to follow": {Data: map[string][]byte{"tls.crt": {}, "tls.key": {}, "next.tls.crt": []byte("c"), "next.tls.key": []byte("k")}},
		"as text":   {StringData: map[string]string{"tls.key": "k"}},
		"PEM":       {Data: map[string][]byte{"id": []byte("-----BEGIN EC PRIVATE KEY-----")}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlan(t)
			secret.ObjectMeta = metav1.ObjectMeta{Namespace: "ns", Name: "x"}
			err := p.Do(t.Context(), olmcore.CreateOf(secret, because))
			require.True(t, apierrors.IsForbidden(err))
			require.ErrorContains(t, err, "a private key belongs into no folder")
			require.Empty(t, p.Objects())
		})
	}
	certificate := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}, Data: map[string][]byte{"tls.crt": []byte("c"), "tls.key": {}}}
	require.NoError(t, newPlan(t).Do(t.Context(), olmcore.CreateOf(certificate, because)))
}

// TestWhatMustRunAsAnAccountIsRefused: who applies a folder of manifests has rights that the account has not.
func TestWhatMustRunAsAnAccountIsRefused(t *testing.T) {
	p := newPlan(t)
	create := olmcore.CreateOf(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}, because)
	create.As = &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "ns", Name: "weak"}
	err := p.Do(t.Context(), create)
	require.True(t, apierrors.IsForbidden(err))
	require.ErrorContains(t, err, "it must be written as ServiceAccount ns/weak, which a manifest cannot say")
	require.Empty(t, p.Objects())
	p.IgnoreAccounts = true
	require.NoError(t, p.Do(t.Context(), create))
	require.Len(t, p.Objects(), 1)
}

// TestNothingIsWrittenOutsideOfTheFolder checks that objects from files whose namespace, name or kind is a path write
// no file outside of the folder, and that each has a file of its own.
func TestNothingIsWrittenOutsideOfTheFolder(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "repository", "plan")
	paths := []string{"../../evil", "/etc/cron.d", "..", ".", `..\..\evil`, "a/../../../../evil", "%2e%2e", "a:b", "a\x00b", "apply/../.."}
	p := newPlan(t)
	for _, path := range paths {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing" + path})
		o.SetNamespace(path)
		o.SetName("../" + path)
		require.NoError(t, p.Do(t.Context(), olmcore.CreateOf(o, because)))
	}
	require.NoError(t, p.Write(dir))
	var files []string
	require.NoError(t, filepath.WalkDir(outside, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
			below, problem := filepath.Rel(filepath.Join(dir, "apply"), path)
			require.NoError(t, problem)
			require.Len(t, strings.Split(below, string(filepath.Separator)), 2, path)
		}
		return err
	}))
	require.Len(t, files, len(paths))
}

// TestALinkInTheFolderLeadsNowhere checks that a link in the folder, which a change of the repository may bring, is not
// followed out of it.
func TestALinkInTheFolderLeadsNowhere(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	kept := filepath.Join(outside, "kept.yaml")
	require.NoError(t, os.WriteFile(kept, []byte(header), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "apply"), 0o755))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "apply", "n")))
	p := newPlan(t)
	require.NoError(t, p.Do(t.Context(), olmcore.CreateOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}, because)))
	require.Error(t, p.Write(dir))
	require.Equal(t, []string{"kept.yaml"}, slices.Collect(maps.Keys(written(t, outside))))
}
