// SPDX-License-Identifier: Apache-2.0

package create_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/installplan/internal/bundle"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// TestNewPlanOrdersStepsByKindThenOperator checks that the steps of a new plan are sorted by kind and then by operator,
// in any order of the resolution.
//
// OLM's cases: an update becomes a plan, with its dependency's Subscription; a dependency brings its steps and a
// Subscription; other objects of a bundle become steps.
func TestNewPlanOrdersStepsByKindThenOperator(t *testing.T) {
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: Bare("s")}
	b := Operator("b", secret)
	b.Catalog.Name = "a version with another name"
	generated := Subscription("dep", func(s *v1alpha1.Subscription) { s.Spec.CatalogSource = "" })
	want := []string{
		"ClusterServiceVersion b.v1", "ClusterServiceVersion rich.v1", "CustomResourceDefinition things.example.com", "ServiceAccount rich", "BundleSecret s",
		"ConfigMap config", "ClusterRole role", "ClusterRole rich.v1", "RoleBinding binding", "ClusterRoleBinding rich.v1", "Service service", "Thing thing", "Subscription dep",
	}
	for _, operators := range [][]olmcore.Operator{{b, Rich()}, {Rich(), b}} {
		subs := []*v1alpha1.Subscription{Subscription("rich"), Subscription("b")}
		in := CreateInput(subs, operators...)
		in.Resolution.Generated = []*v1alpha1.Subscription{generated}
		p := Made(t, Planned(t, in))
		require.Equal(t, []string{"b.v1", "rich.v1"}, p.Spec.ClusterServiceVersionNames)
		in.InstallPlans, in.Subscriptions = olmcore.Found(p), olmcore.Found(Referring(subs, p)...)
		got, ok := olmcore.StatusOf[*v1alpha1.InstallPlan](Planned(t, in).Actions)
		require.True(t, ok)
		var steps []string
		for _, s := range got.Status.Plan {
			name := s.Resource.Name
			if strings.HasPrefix(name, "rich.v1-") {
				name = "rich.v1" // the rest is a hash
			}
			steps = append(steps, s.Resource.Kind+" "+name)
		}
		require.Equal(t, want, steps)
		require.Equal(t, []string{"a version with another name", "cool"}, got.Status.CatalogSources, "sorted, each once, none without a name")
	}
}

// TestContentHashIgnoresOrderOfObjects checks that a bundle with its objects in another order has the same hash, and so
// the same plan.
func TestContentHashIgnoresOrderOfObjects(t *testing.T) {
	subs := []*v1alpha1.Subscription{Subscription("rich")}
	o, other := Rich(), Rich()
	slices.Reverse(other.Bundle.Objects)
	p := Made(t, Planned(t, CreateInput(subs, o)))
	require.Equal(t, p.Name, Made(t, Planned(t, CreateInput(subs, other))).Name)
	other.Bundle.Objects[0].SetAnnotations(map[string]string{"x": "y"})
	require.NotEqual(t, p.Name, Made(t, Planned(t, CreateInput(subs, other))).Name)
}

// TestManifestsContainNoStatus checks that manifests contain no status, and that the step of an object without a name
// has its generateName.
func TestManifestsContainNoStatus(t *testing.T) {
	o := Operator("a", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}})
	o.Bundle.Objects[0].(*v1alpha1.ClusterServiceVersion).Status.Phase = v1alpha1.CSVPhaseSucceeded
	steps, err := bundle.Steps(o, NS, bundle.Literal)
	require.NoError(t, err)
	require.NotContains(t, steps[0].Resource.Manifest, "Succeeded")
	require.Equal(t, "x-", steps[1].Resource.Name)

	in := CreateInput([]*v1alpha1.Subscription{Subscription("a")}, Operator("a"))
	in.Resolution.Generated = []*v1alpha1.Subscription{Subscription("dep", Current("dep.v1"))}
	p := Made(t, Planned(t, in))
	in.InstallPlans, in.Subscriptions.Items = olmcore.Found(p), Referring(in.Subscriptions.Items, p)
	got, _ := olmcore.StatusOf[*v1alpha1.InstallPlan](Planned(t, in).Actions)
	require.NotContains(t, got.Status.Plan[1].Resource.Manifest, "status")
}

// TestPlanWaitsForUnpackedImages checks that an image that is not unpacked becomes a lookup, and that no plan is
// created before.
//
// OLM's cases: a pending lookup: no plan, and the Subscription says so; an image gives a lookup with both conditions,
// and no plan yet.
func TestPlanWaitsForUnpackedImages(t *testing.T) {
	o, _ := ImageOf(t, Operator("a"))
	subs := []*v1alpha1.Subscription{Subscription("a")}
	out, err := create.Plan(Completed(create.Input{Now: Noon, Namespace: NS, Subscriptions: olmcore.Found(subs...), Resolution: Installs(o)(subs)}))
	require.NoError(t, err)
	require.Empty(t, out.Actions)
	require.Len(t, out.Lookups, 1)
	l := out.Lookups[0]
	require.Equal(t, BundleImage, l.Path)
	require.Equal(t, "a.v1", l.Identifier)
	Same(t, []string{"Pending JobNotStarted: unpack job not yet started"}, ConditionsOf(l))
	require.Equal(t, corev1.ConditionTrue, l.GetCondition("BundleLookupNotPersisted").Status)
	Same(t, []string{"BundleNotUnpacked"}, Reasons(out.Result))
}

// TestInvalidBundleBlocksTheWholePlan checks that no plan is created if one of its bundles cannot be installed.
func TestInvalidBundleBlocksTheWholePlan(t *testing.T) {
	subs := []*v1alpha1.Subscription{Subscription("a"), Subscription("b")}
	image := olmcore.Operator{Name: "b.v1", Package: "b", Bundle: olmcore.Bundle{Image: "quay.io/b@sha256:1"}}
	two, misnamed, bare, strange := Operator("b"), Operator("b"), Operator("b"), Operator("b")
	two.Bundle.Objects = append(two.Bundle.Objects, CSV("c.v1"))
	misnamed.Name = "b.v2"
	bare.Bundle.Objects = nil
	strange.Bundle.Properties = []olmcore.Property{{Type: "x", Value: []byte("{")}}
	large := Operator("b", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "big"}, Data: map[string]string{"x": strings.Repeat("x", 1<<20)}})
	for name, c := range map[string]struct {
		operator olmcore.Operator
		reason   string
		message  string
	}{
		"an image that is not unpacked": {
			image, create.ReasonBundleNotUnpacked, "operator b.v1: the objects of bundle image quay.io/b@sha256:1 are not known",
		},
		"an empty bundle": {bare, create.ReasonBundleInvalid, "operator b.v1: its bundle has neither objects nor an image"},
		"two CSVs":        {two, create.ReasonBundleInvalid, "operator b.v1: its bundle has more than one ClusterServiceVersion"},
		"a version with another name": {
			misnamed, create.ReasonBundleInvalid, `operator b.v2: its bundle's ClusterServiceVersion is named "b.v1"`,
		},
		"an invalid property": {
			strange, create.ReasonBundleInvalid, `operator b.v1: failed to load bundle properties for "b.v1": json: error calling MarshalJSON for type json.RawMessage: unexpected end of JSON input`,
		},
		"a bundle that is too large": {large, create.ReasonPlanTooLarge, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out := Planned(t, CreateInput(subs, Operator("a"), c.operator))
			require.Empty(t, out.Actions)
			require.Equal(t, []string{c.reason}, Reasons(out.Result))
			if c.message != "" {
				require.Equal(t, c.message, out.Diagnostics[0].Message)
			}
		})
	}
}

// TestDuplicateObjectsAndEmptySchemasOfABundle checks that a duplicate object gets two steps, as in OLM, and that an
// empty map of a schema is omitted.
func TestDuplicateObjectsAndEmptySchemasOfABundle(t *testing.T) {
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	crd := CRDObject("v1")
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
	steps, err := bundle.Steps(Operator("a", secret, secret, crd), NS, bundle.Literal)
	require.NoError(t, err)
	require.Len(t, steps, 4)
	require.Equal(t, steps[1], steps[2])
	require.NotContains(t, steps[3].Resource.Manifest, "properties")
}

// TestBundleStepsAreOrdered checks the order and the kinds of the steps of a bundle, and the manifest of its
// ClusterServiceVersion.
//
// OLM's cases: a new Subscription gets the steps of a version; an update replaces what is installed.
func TestBundleStepsAreOrdered(t *testing.T) {
	o := Operator("a",
		&corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "s"}},
		CRDObject("v1"))
	o.Replaces = "a.v0"
	o.Bundle.Properties = []olmcore.Property{{Type: "olm.package", Value: []byte(`{"packageName":"a"}`)}}
	o.Bundle.Objects[0].(*v1alpha1.ClusterServiceVersion).Spec.InstallStrategy.StrategySpec.Permissions =
		[]v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "a", Rules: Rules()}}
	steps, err := bundle.Steps(o, NS, bundle.Literal)
	require.NoError(t, err)
	var kinds []string
	for _, s := range steps {
		kinds = append(kinds, s.Resource.Kind)
		require.Equal(t, "a.v1", s.Resolving)
		require.Equal(t, "cool", s.Resource.CatalogSource)
		require.True(t, strings.HasSuffix(s.Resource.Manifest, "}\n"))
	}
	require.Equal(t, []string{"ClusterServiceVersion", "BundleSecret", "CustomResourceDefinition", "ServiceAccount", "Role", "RoleBinding"}, kinds)
	require.Contains(t, steps[0].Resource.Manifest, `"replaces":"a.v0"`)
	require.Contains(t, steps[0].Resource.Manifest, `"operatorframework.io/properties":"{\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"a\"}}]}"`)
	require.NotContains(t, steps[4].Resource.Manifest, `"kind":"Role"`, "as OLM writes it")

	o.Bundle.Objects = append(o.Bundle.Objects, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "t"}, "spec": map[string]any{"replicas": int(1)},
	}})
	steps, err = bundle.Steps(o, NS, bundle.Literal)
	require.NoError(t, err)
	require.Equal(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"},"spec":{"replicas":1}}`+"\n", steps[3].Resource.Manifest)
}

// TestOnlyMatchingConfigMapsAreUsed checks that a ConfigMap is used only if it is in the namespace of the catalog,
// contains the image of the operator, and is not being deleted.
func TestOnlyMatchingConfigMapsAreUsed(t *testing.T) {
	full := Filled(map[string]string{"csv.yaml": EtcdCSV})
	o := olmcore.Operator{Name: "etcd.v1", Package: "a", Catalog: types.NamespacedName{Namespace: "olm", Name: "cool"}, Bundle: olmcore.Bundle{Image: BundleImage}}
	for name, c := range map[string]struct {
		change func(*corev1.ConfigMap)
		made   bool
	}{
		"of the operator":       {func(*corev1.ConfigMap) {}, true},
		"of another namespace":  {func(cm *corev1.ConfigMap) { cm.Namespace = "elsewhere" }, false},
		"of another image":      {func(cm *corev1.ConfigMap) { cm.Annotations["olm.sourceImage"] = "other" }, false},
		"that is being deleted": {func(cm *corev1.ConfigMap) { cm.DeletionTimestamp = Ago(0) }, false},
	} {
		cm := full.DeepCopy()
		c.change(cm)
		in := CreateInput([]*v1alpha1.Subscription{Subscription("a")}, o)
		in.ConfigMaps = olmcore.Found(cm)
		require.Equal(t, c.made, len(Planned(t, in).Actions) == 1, name)
	}
}
