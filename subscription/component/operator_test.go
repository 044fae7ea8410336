// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/internal/sample"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/component"
)

// labelled puts the component label of package etcd on an object.
func labelled[T olmcore.Object](o T) T {
	o.SetLabels(map[string]string{labelKey: ""})
	return o
}

// partial is an object of which only the metadata is known.
func partial(apiVersion, kind, namespace, name string) *metav1.PartialObjectMetadata {
	return labelled(&metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	})
}

func operatorObject(change ...func(*operatorsv1.Operator)) *operatorsv1.Operator {
	o := &operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: "etcd.ops", UID: "o", ResourceVersion: "1"}}
	for _, f := range change {
		f(o)
	}
	return o
}

func refsOf(o *operatorsv1.Operator) string {
	var all []string
	for _, r := range o.Status.Components.Refs {
		word := r.Kind + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
		for _, c := range r.Conditions {
			word += fmt.Sprintf(" %s=%s", c.Type, c.Status)
		}
		all = append(all, word)
	}
	return strings.Join(all, ", ")
}

// TestOperatorStatusListsItsComponents checks which labelled objects are components of an Operator object.
//
// OLM's cases: components sorted, with conditions and without copies.
func TestOperatorStatusListsItsComponents(t *testing.T) {
	deployment := labelled(&appsv1.Deployment{ObjectMeta: meta("etcd")})
	deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Available", Status: "True", LastUpdateTime: second(3)}, {Type: "Progressing", Status: "False"}}
	copied := newCSV("copy", func(c *v1alpha1.ClusterServiceVersion) { c.Status.Reason = v1alpha1.CSVReasonCopied })
	for name, tc := range map[string]struct {
		operator   *operatorsv1.Operator
		components []olmcore.Object
		want       string // the action
		refs       string
	}{
		"it is made while something carries the label": {nil, []olmcore.Object{newSub("a")}, "create Operator etcd.ops", ""},
		"it is not made for nothing":                   {nil, nil, "", ""},
		"it is not made for another label":             {nil, []olmcore.Object{vault("b")}, "", ""},
		"it is not made for a copy":                    {nil, []olmcore.Object{copied}, "", ""},
		"a user's Operator without components says so": {operatorObject(), nil, "updateStatus Operator etcd.ops", ""},
		"what is being deleted is left alone":          {operatorObject(func(o *operatorsv1.Operator) { o.DeletionTimestamp = secondp(3) }), []olmcore.Object{newSub("a")}, "", ""},
		"components are sorted, with their conditions": {operatorObject(), []olmcore.Object{
			newSub("b", pending("Installing", 3)), newSub("a"), newCSV("etcd.v1"), deployment, copied, vault("v"),
			partial("v1", "Namespace", "", "x"), partial("rbac.authorization.k8s.io/v1", "ClusterRole", "", "x"),
		}, "updateStatus Operator etcd.ops",
			"ClusterRole x, ClusterServiceVersion ops/etcd.v1 Succeeded=True, Deployment ops/etcd Available=True Progressing=False, Namespace x, " +
				"Subscription ops/a, Subscription ops/b InstallPlanPending=True"},
		"what is handed in twice counts once": {operatorObject(), []olmcore.Object{newSub("a"), newSub("a")}, "updateStatus Operator etcd.ops", "Subscription ops/a"},
	} {
		t.Run(name, func(t *testing.T) {
			in := component.Input{Name: "etcd.ops", Operator: tc.operator, Components: tc.components}
			require.NoError(t, invariant.Deterministic(component.Reconcile, in))
			require.NoError(t, invariant.Pure(component.Reconcile, in))
			out, err := component.Reconcile(in)
			require.NoError(t, err)
			require.Equal(t, tc.want, words(out))
			if after, ok := olmcore.StatusOf[*operatorsv1.Operator](out.Actions); ok {
				require.Equal(t, tc.refs, refsOf(after))
				require.Equal(t, []metav1.LabelSelectorRequirement{{Key: labelKey, Operator: "Exists"}}, after.Status.Components.LabelSelector.MatchExpressions)
				in.Operator = after
				out, err = component.Reconcile(in)
				require.NoError(t, err)
				require.True(t, out.Empty(), "written twice")
			}
		})
	}
}

// TestOperatorStatusEscapesInvisibleCharacters checks that invisible characters in conditions of components are
// escaped, and that those that OLM recorded are kept.
func TestOperatorStatusEscapesInvisibleCharacters(t *testing.T) {
	const hidden, shown = "a\u202eb", `a\u202eb`
	sub := newSub("a", pending(hidden, 3))
	sub.Status.Conditions[0].Message, sub.Status.Conditions[0].Type = hidden, hidden
	csv := newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) {
		c.Status.Phase, c.Status.Reason, c.Status.Message = hidden, hidden, hidden
	})
	deployment := labelled(&appsv1.Deployment{ObjectMeta: meta("etcd")})
	deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: hidden, Status: hidden, Reason: hidden, Message: hidden}}
	in := component.Input{Name: "etcd.ops", Operator: operatorObject(), Components: []olmcore.Object{sub, csv, deployment}}
	out, err := component.Reconcile(in)
	require.NoError(t, err)
	require.NoError(t, invariant.Pure(component.Reconcile, in))
	after, _ := olmcore.StatusOf[*operatorsv1.Operator](out.Actions)
	require.Len(t, after.Status.Components.Refs, 3)
	recorded := after.DeepCopy()
	for i, ref := range after.Status.Components.Refs {
		require.Len(t, ref.Conditions, 1)
		c := ref.Conditions[0]
		for _, text := range []string{string(c.Type), c.Reason, c.Message} {
			require.Equal(t, shown, text, ref.Kind)
		}
		of := &recorded.Status.Components.Refs[i].Conditions[0]
		of.Type, of.Reason, of.Message = hidden, hidden, hidden
	}
	require.Equal(t, hidden, deployment.Status.Conditions[0].Message, "the component is as it was")

	for _, operator := range []*operatorsv1.Operator{after, recorded} {
		in.Operator = operator
		out, err = component.Reconcile(in)
		require.NoError(t, err)
		require.True(t, out.Empty(), "only the escaping differs")
	}
	recorded.Status.Components.Refs[0].Conditions[0].Message = "another"
	out, err = component.Reconcile(in)
	require.NoError(t, err)
	require.Len(t, out.Actions, 1)
}

// TestConditionsAreListedDespiteInvalidValues checks that the conditions of a component are listed although its
// spec, or another part of its status, has a value that JSON cannot contain.
func TestConditionsAreListedDespiteInvalidValues(t *testing.T) {
	const invalid = "{"
	definition := labelled(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "etcds.example.com"}})
	definition.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Default: &apiextensionsv1.JSON{Raw: []byte(invalid)}},
	}}}
	definition.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: "Established", Status: "True"}}
	_, err := olmcore.ToMap(definition)
	require.Error(t, err)

	thing := labelled(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "x"},
		"status": map[string]any{
			"names":      []string{"no JSON value"},
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
		},
	}})
	_, err = olmcore.ToMap(thing)
	require.Error(t, err)

	in := component.Input{Name: "etcd.ops", Operator: operatorObject(), Components: []olmcore.Object{definition, thing}}
	out, err := component.Reconcile(in)
	require.NoError(t, err)
	after, isWritten := olmcore.StatusOf[*operatorsv1.Operator](out.Actions)
	require.True(t, isWritten)
	require.Equal(t, "CustomResourceDefinition etcds.example.com Established=True, Thing x Ready=True", refsOf(after))
}

// TestAnInvalidOperatorNameIsReported checks that an Operator object whose name the API server would reject is not
// created, and that the Diagnostic is about an object which exists.
func TestAnInvalidOperatorNameIsReported(t *testing.T) {
	for _, name := range []string{"Etcd.ops", "my_etcd.ops", "etcd..ops", "etcd-.ops"} {
		key := olmcore.ComponentLabelPrefix + name
		with := func(o olmcore.Object) olmcore.Object {
			o.SetLabels(map[string]string{key: ""})
			return o
		}
		in := component.Input{Name: name, Components: []olmcore.Object{with(newCSV("etcd.v1")), with(newSub("b")), with(newSub("a"))}}
		out, err := component.Reconcile(in)
		require.NoError(t, err)
		require.Empty(t, out.Actions, name)
		require.Equal(t, "OperatorNameInvalid", reasons(out), name)
		require.Equal(t, "Subscription ops/a",
			fmt.Sprint(out.Diagnostics[0].Target.Kind, " ", out.Diagnostics[0].Target.Namespace, "/", out.Diagnostics[0].Target.Name))
		require.Equal(t, fmt.Sprintf("metadata.labels[%q]", key), out.Diagnostics[0].Path)
		require.Contains(t, out.Diagnostics[0].Message,
			fmt.Sprintf("%q is not a valid object name: a lowercase RFC 1123 subdomain must consist of", name))
		in.Components = in.Components[:1]
		out, err = component.Reconcile(in)
		require.NoError(t, err)
		require.Equal(t, "ClusterServiceVersion", out.Diagnostics[0].Target.Kind)
		in.Components = nil
		out, err = component.Reconcile(in)
		require.NoError(t, err)
		require.True(t, out.Empty())
	}
}

func TestOperatorStatusIsLimited(t *testing.T) {
	_, err := component.Reconcile(component.Input{})
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
	_, err = component.Reconcile(component.Input{Name: "x", Components: []olmcore.Object{nil}})
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
	out, err := component.Reconcile(component.Input{Name: strings.Repeat("x", 64), Operator: operatorObject()})
	require.NoError(t, err)
	require.Equal(t, "LabelKeyInvalid", reasons(out))
	require.Empty(t, out.Actions)

	in := component.Input{Name: "etcd.ops", Operator: operatorObject()}
	for i := range component.MaxRefs + 2 {
		in.Components = append(in.Components, partial("v1", "Secret", ns, fmt.Sprint(i)))
	}
	out, err = component.Reconcile(in)
	require.NoError(t, err)
	require.Equal(t, "OperatorRefsCut", reasons(out))
	after, _ := olmcore.StatusOf[*operatorsv1.Operator](out.Actions)
	require.Len(t, after.Status.Components.Refs, component.MaxRefs)

	said := newCSV("v", func(c *v1alpha1.ClusterServiceVersion) {
		c.Labels, c.Status.Phase, c.Status.Message = map[string]string{labelKey: ""}, v1alpha1.CSVPhaseSucceeded, "fine"
	})
	long := newCSV("w", func(c *v1alpha1.ClusterServiceVersion) {
		c.Labels, c.Status.Phase, c.Status.Message = map[string]string{labelKey: ""}, v1alpha1.CSVPhaseSucceeded, strings.Repeat("x", 1<<20)
	})
	out, err = component.Reconcile(component.Input{Name: "etcd.ops", Operator: operatorObject(), Components: []olmcore.Object{long, said}})
	require.NoError(t, err)
	require.Equal(t, "OperatorRefsCut", reasons(out))
	after, _ = olmcore.StatusOf[*operatorsv1.Operator](out.Actions)
	require.Len(t, after.Status.Components.Refs, 2)
	require.Len(t, after.Status.Components.Refs[0].Conditions, 1)
	require.Empty(t, after.Status.Components.Refs[1].Conditions)
}

// scannedKinds are the kinds that can carry a component label.
var scannedKinds = strings.Fields("apps/v1/Deployment v1/Service v1/Namespace apiregistration.k8s.io/v1/APIService " +
	"apiextensions.k8s.io/v1/CustomResourceDefinition operators.coreos.com/v1alpha1/Subscription operators.coreos.com/v1alpha1/InstallPlan " +
	"operators.coreos.com/v1alpha1/ClusterServiceVersion operators.coreos.com/v2/OperatorCondition v1/Secret v1/ConfigMap v1/ServiceAccount " +
	"rbac.authorization.k8s.io/v1/Role rbac.authorization.k8s.io/v1/RoleBinding rbac.authorization.k8s.io/v1/ClusterRole rbac.authorization.k8s.io/v1/ClusterRoleBinding")

var clusterScoped = strings.Fields("Namespace APIService CustomResourceDefinition ClusterRole ClusterRoleBinding")

// objectOf makes a labelled object of a kind as scannedKinds names it.
func objectOf(t require.TestingT, name string) olmcore.Object {
	i := strings.LastIndex(name, "/")
	namespace := ns
	if slices.Contains(clusterScoped, name[i+1:]) {
		namespace = ""
	}
	data, err := json.Marshal(map[string]any{"apiVersion": name[:i], "kind": name[i+1:], "metadata": map[string]any{
		"name": "x", "namespace": namespace, "uid": name, "resourceVersion": "1", "labels": map[string]any{labelKey: ""},
	}})
	require.NoError(t, err)
	o, err := decode.Decode(data)
	require.NoError(t, err)
	return o
}

// TestOperatorIsGatheredFromEveryKind checks that the components of an Operator object are read from all kinds, and
// that Affected names the Operator object for each of them.
//
// OLM's cases: names of Operators from labels.
func TestOperatorIsGatheredFromEveryKind(t *testing.T) {
	objects := []olmcore.Object{operatorObject()}
	for _, name := range scannedKinds {
		o := objectOf(t, name)
		require.Equal(t, []types.NamespacedName{{Name: "etcd.ops"}}, component.Affected(o))
		objects = append(objects, o)
	}
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	in, err := component.Gather(context.Background(), snapshot, "etcd.ops")
	require.NoError(t, err)
	require.Len(t, in.Components, len(scannedKinds))
	require.NotNil(t, in.Operator)
	in, err = component.Gather(context.Background(), snapshot, "no label!")
	require.NoError(t, err)
	require.Empty(t, in.Components)
	for n := range len(scannedKinds) + 1 {
		left := n
		_, err := component.Gather(context.Background(), sample.Failing{Reader: snapshot, Left: &left}, "etcd.ops")
		require.ErrorIs(t, err, sample.ErrRead)
	}

	require.Equal(t, []types.NamespacedName{{Name: "etcd.ops"}}, component.Affected(operatorObject()))
	require.Nil(t, component.Affected((*corev1.Secret)(nil)))
	require.Nil(t, component.Affected(&corev1.Secret{}))
	several := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		"operators.coreos.com/b.x": "", "operators.coreos.com/a.x": "", "app": "c", "operators.coreos.com/": "",
	}}}
	require.Equal(t, []types.NamespacedName{{Name: "a.x"}, {Name: "b.x"}}, component.Affected(several))
}

// TestOperatorRefsFollowTheLabels reconciles the Operator object in a cluster while labels are added and removed,
// and while the object is deleted.
//
// OLM's cases: the Operator object comes back, and follows the labels.
func TestOperatorRefsFollowTheLabels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := fake.NewCluster(epoch)
		c.AutoCreateNamespaces = true
		work := func() (writes int) {
			in, err := component.Gather(context.Background(), c, "etcd.ops")
			require.NoError(t, err)
			out, err := component.Reconcile(in)
			require.NoError(t, err)
			require.NoError(t, olmcore.Run(context.Background(), c, out.Actions))
			return len(out.Actions)
		}
		carriers := map[string]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				carries := rapid.Bool().Draw(t, "carries")
				if fake.Find[*corev1.Secret](c, ns, name) == nil {
					require.NoError(t, c.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}))
				}
				require.NoError(t, fake.Edit(c, ns, name, func(s *corev1.Secret) {
					if s.Labels = nil; carries {
						s.Labels = map[string]string{labelKey: "x"}
					}
				}))
				carriers[name] = carries
			case 2:
				_ = c.Delete(olmcore.Ref{APIVersion: "operators.coreos.com/v1", Kind: "Operator", Name: "etcd.ops"})
			case 3:
				work()
			}
		}
		for round := 0; work() > 0; round++ {
			require.Less(t, round, 4, "not at rest")
		}
		var want []string
		for _, name := range []string{"a", "b", "c"} {
			if carriers[name] {
				want = append(want, "Secret ops/"+name)
			}
		}
		operator := fake.Find[*operatorsv1.Operator](c, "", "etcd.ops")
		if operator == nil {
			require.Empty(t, want)
			return
		}
		require.Empty(t, cmp.Diff(strings.Join(want, ", "), refsOf(operator)))
	})
}

// TestRolesInOtherNamespacesAreLabelled checks that the Roles of a CSV in its target namespaces are labelled. They
// have owner labels instead of an owner reference.
func TestRolesInOtherNamespacesAreLabelled(t *testing.T) {
	role := &rbacv1.Role{ObjectMeta: meta("x")}
	role.Namespace, role.Labels = "elsewhere", olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: ns, Name: "etcd.v1"}.Labels()
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{newSub("a", follows("p", "etcd.v1"), installed), newCSV("etcd.v1"), newPlan("p", "Complete"), role}, olmcore.Everything)
	require.NoError(t, err)
	in, err := subscription.Gather(context.Background(), snapshot, ns, subscription.Config{})
	require.NoError(t, err)
	in.Now = now
	require.Contains(t, labelsAfter(reconcile(t, in))["Role/x"], labelKey)
	require.Contains(t, subscription.Affected(role), types.NamespacedName{Namespace: ns})
}

// TestEveryOwnedKindIsLabelled checks that every object that a labelled CSV owns gets its label, whether it has an
// owner reference or owner labels. The kinds of OLM have their own rules.
//
// OLM's cases: every kind that a version owns has the label.
func TestEveryOwnedKindIsLabelled(t *testing.T) {
	owner := newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) {
		c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "x"}}
	})
	for _, name := range scannedKinds {
		for _, by := range []string{"reference", "labels"} {
			o := objectOf(t, name)
			o.SetLabels(nil)
			if by == "labels" {
				o.SetLabels(olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: ns, Name: "etcd.v1"}.Labels())
			} else {
				o.SetOwnerReferences([]metav1.OwnerReference{olmcore.OwnerReferenceTo(owner)})
			}
			if olmcore.KeyOf(o).Kind == "CustomResourceDefinition" {
				o.SetAnnotations(map[string]string{"operatorframework.io/installed-alongside-1": ns + "/etcd.v1"})
			}
			objects := []olmcore.Object{newSub("a", follows("p", "etcd.v1"), installed), owner, newPlan("p", "Complete"), o}
			snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
			require.NoError(t, err)
			in, err := subscription.Gather(context.Background(), snapshot, ns, subscription.Config{})
			require.NoError(t, err)
			in.Now = now
			kind := olmcore.KeyOf(o).Kind
			own := slices.Contains([]string{"Subscription", "InstallPlan", "ClusterServiceVersion"}, kind)
			byName := kind == "CustomResourceDefinition"
			cluster := slices.Contains(clusterScoped, kind)
			want := !own && (byName || by == "labels" || !cluster)
			_, got := labelsAfter(reconcile(t, in))[kind+"/x"]
			require.Equal(t, want, got && !own, "%s by %s", name, by)
		}
	}
}
