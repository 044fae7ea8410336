// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/kinds"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

var key = types.NamespacedName{Namespace: NS, Name: "install-x"}

// TestGatherReadsObjectsOfSteps includes OLM's cases.
func TestGatherReadsObjectsOfSteps(t *testing.T) {
	crd := Installed(CRDObject("v1"), true)
	crd.Annotations = map[string]string{"operatorframework.io/installed-alongside-1": "there/b.v1", "operatorframework.io/installed-alongside-2": "ops/a.v1"}
	thing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "t", "namespace": NS}}}
	sub, version, role := Subscription("a"), CSV("a.v1"), &rbacv1.Role{ObjectMeta: Meta("r")}
	neighbour := CSV("b.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" })
	renamed := &corev1.Service{ObjectMeta: Meta("by-manifest")}
	pull := &corev1.Secret{ObjectMeta: Meta("pull")}
	pull.Namespace = "olm"
	account := &corev1.ServiceAccount{ObjectMeta: Meta("scoped")}
	namespace := &corev1.Namespace{ObjectMeta: ClusterMeta(NS)}
	p := Plan(Installing, []*v1alpha1.Step{
		CSVStep("a.v1"), CRDStep("a.v1", "v1"), RoleStep("a.v1", "r"), RoleStep("a.v1", "r"), nil,
		Step("a.v1", "", "v1", "Service", "by-step", `{"metadata":{"name":"by-manifest"}}`),
		Step("", "", "v1", "Secret", "pull", ""),
		Step("a.v1", "example.com", "v1", "Thing", "t", `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"}}`),
		Step("a.v1", "monitoring.coreos.com", "v1", "ServiceMonitor", "m", `{"apiVersion":"monitoring.coreos.com/v1","kind":"ServiceMonitor","metadata":{"name":"m"}}`),
	}, func(p *v1alpha1.InstallPlan) { p.Status.AttenuatedServiceAccountRef = olmReference("scoped") })
	catalog, theirs := pullCatalog("pull"), served("v1beta1")
	r := Reader(t, p, crd, thing, sub, version, role, neighbour, renamed, pull, catalog, account, namespace, Group(),
		theirs, served("v1", automanaged("true")),
		Subscription("elsewhere", func(s *v1alpha1.Subscription) { s.Namespace = "there" }))
	config := installplan.Config{SupportedKinds: []string{"Thing", "ServiceMonitor"}}
	got, err := installplan.Gather(t.Context(), r, key, config)
	require.NoError(t, err)
	Same(t, installplan.Input{
		InstallPlan: p, Namespace: olmcore.Found(namespace), Subscriptions: olmcore.Found[*v1alpha1.Subscription](sub), OperatorGroups: olmcore.Found[*operatorsv1.OperatorGroup](Group()),
		ClusterServiceVersions: olmcore.Found[*v1alpha1.ClusterServiceVersion](version), Alongside: olmcore.Found[*v1alpha1.ClusterServiceVersion](neighbour),
		CustomResourceDefinitions: got.CustomResourceDefinitions, Objects: olmcore.Found[olmcore.Object](role, renamed, thing),
		ConfigMaps: olmcore.Found[*corev1.ConfigMap](), PullSecrets: olmcore.Found[*corev1.Secret](pull), CatalogSources: olmcore.Found[*v1alpha1.CatalogSource](catalog), ServiceAccount: account, Config: config,
		RelatedPlans: olmcore.Found[*v1alpha1.InstallPlan](), APIServices: olmcore.Found(theirs),
	}, got)
	require.Len(t, got.CustomResourceDefinitions.Items, 1)
	require.Zero(t, r.Kinds["ServiceMonitor"], "a kind that is not served is not asked for")
	require.Equal(t, 1, r.Kinds["Role"], "each object is read once")

	for kind := range r.Kinds {
		broken := r
		broken.Fail = kind
		_, err := installplan.Gather(t.Context(), broken, key, config)
		require.ErrorContains(t, err, "no answer", "a failed read of %s is no empty answer", kind)
	}
}

func TestGatherReadsLittleForFinishedPlans(t *testing.T) {
	steps := []*v1alpha1.Step{CSVStep("a.v1"), RoleStep("a.v1", "r")}
	for _, p := range []*v1alpha1.InstallPlan{Plan(Complete, steps), Plan(Failed, steps), Plan(None, nil),
		Plan(Installing, steps, func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = Ago(0) })} {
		r := Reader(t, p, CSV("a.v1"), Group())
		_, err := installplan.Gather(t.Context(), r, key, installplan.Config{})
		require.NoError(t, err)
		require.Equal(t, map[string]int{"InstallPlan": 1, "Namespace": 1, "Subscription": 1}, r.Kinds)
	}
	_, err := installplan.Gather(t.Context(), Reader(t), key, installplan.Config{})
	require.True(t, apierrors.IsNotFound(err))
}

// TestAPIServicesAreReadIfAPlanMayAddAVersion checks that Gather reads APIServices only for plans that may add a
// version to an API group: plans with a new definition, and plans with a ServiceAccount and an open step for a
// definition.
func TestAPIServicesAreReadIfAPlanMayAddAVersion(t *testing.T) {
	asAccount, _ := scopedTo(&corev1.ObjectReference{Namespace: NS, Name: "limited"})
	exists, refers, other := Installed(CRDObject("v1"), true), CRDStep("a.v1", "v1"), CRDStep("a.v1", "v1")
	refers.Resource.Manifest, other.Resource.Name = Reference(), "others.example.com"
	for name, c := range map[string]struct {
		step   *v1alpha1.Step
		exists bool
		change func(*v1alpha1.InstallPlan)
		reads  int
	}{
		"no definition":                          {step: RoleStep("a.v1", "r")},
		"a new one":                              {step: CRDStep("a.v1", "v1"), reads: 1},
		"a new one of a bundle":                  {step: refers, reads: 1},
		"the name is that of another definition": {step: other, reads: 0, exists: true},
		"one that exists":                        {step: CRDStep("a.v1", "v1"), exists: true},
		"one that was deleted":                   {step: WithStatus(Created, CRDStep("a.v1", "v1")), reads: 1},
		"one that exists, an account":            {step: CRDStep("a.v1", "v1"), exists: true, change: asAccount, reads: 1},
		"one that is done, an account":           {step: WithStatus(Created, CRDStep("a.v1", "v1")), exists: true, change: asAccount},
		"one that is skipped":                    {step: WithStatus(v1alpha1.StepStatusNotCreated, CRDStep("a.v1", "v1"))},
		"a plan that is Complete": {
			step: CRDStep("a.v1", "v1"), change: func(p *v1alpha1.InstallPlan) { p.Status.Phase = Complete },
		},
	} {
		p := Plan(Installing, []*v1alpha1.Step{nil, c.step}, func(p *v1alpha1.InstallPlan) {
			if c.change != nil {
				c.change(p)
			}
		})
		objects := []olmcore.Object{p, Group(), &corev1.Namespace{ObjectMeta: ClusterMeta(NS)}}
		if c.exists {
			objects = append(objects, exists)
		}
		r := Reader(t, objects...)
		in, err := installplan.Gather(t.Context(), r, key, installplan.Config{})
		require.NoError(t, err, name)
		require.Equal(t, c.reads, r.Kinds["APIService"], name)
		require.Equal(t, c.reads > 0, in.APIServices.Complete, name)
	}
}

// TestGatherReadsOnlyVersionsThatMayCount checks that Gather does not read all versions of a namespace, which may
// contain thousands of copies, unless any of them may count.
func TestGatherReadsOnlyVersionsThatMayCount(t *testing.T) {
	versions := func(change func(p *v1alpha1.InstallPlan), more ...olmcore.Object) []string {
		role := RoleStep("a.v1", "r")
		role.Resource.Manifest = `{"metadata":{"name":"r","ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","name":"owner.v1"}]}}`
		p := Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1"), nil, role, RoleStep("resolved.v1", "s"), CRDStep("a.v1", "v1")})
		if change != nil {
			change(p)
		}
		crd := Installed(CRDObject("v1"), true)
		crd.Annotations = map[string]string{"operatorframework.io/installed-alongside-1": NS + "/beside.v1"}
		objects := append([]olmcore.Object{p, crd}, more...)
		for _, name := range []string{"a.v1", "owner.v1", "resolved.v1", "beside.v1", "copy.v1", "other.v1"} {
			objects = append(objects, CSV(name))
		}
		s, err := olmcore.NewSnapshot(objects, olmcore.Everything)
		require.NoError(t, err)
		in, err := installplan.Gather(t.Context(), s, types.NamespacedName{Namespace: NS, Name: p.Name}, installplan.Config{})
		require.NoError(t, err)
		var names []string
		for _, c := range in.ClusterServiceVersions.Items {
			names = append(names, c.Name)
		}
		return names
	}
	require.Equal(t, []string{"a.v1", "beside.v1", "owner.v1", "resolved.v1"}, versions(nil))
	require.Len(t, versions(func(p *v1alpha1.InstallPlan) { p.Spec.ClusterServiceVersionNames = nil }), 6, "another may own its definitions")
	refers := func(p *v1alpha1.InstallPlan) { p.Status.Plan[2].Resource.Manifest = Reference() }
	unpacked := Filled(map[string]string{"csv.yaml": EtcdCSV})
	unpacked.Namespace = NS
	require.Equal(t, []string{"a.v1", "beside.v1", "resolved.v1"}, versions(refers, unpacked))
	for _, text := range []string{`{"metadata":{"ownerReferences":[]}}`, `{"metadata":{"annotations":{"operatorframework.io/installed-alongside-1":"ops/x"}}}`} {
		unpacked = unpacked.DeepCopy()
		unpacked.Data["x.json"] = text
		require.Len(t, versions(refers, unpacked), 6, "a bundle may name any version")
	}
}

// keeper is a Reader that keeps indexes.
type keeper struct {
	olmcore.IndexedReader
	kept map[string]any
}

func (k keeper) Index(gvk schema.GroupVersionKind, namespace, key string, build func() any) any {
	key = fmt.Sprint(gvk, namespace, key)
	if k.kept[key] == nil {
		k.kept[key] = build()
	}
	return k.kept[key]
}

// TestReconcileDecidesTheSameWithAnIndex checks finished and unfinished plans.
func TestReconcileDecidesTheSameWithAnIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects, others := DrawRelations(t)
		snapshot, err := olmcore.NewSnapshot(append(objects, others...), olmcore.Everything)
		require.NoError(t, err)
		indexed := keeper{olmcore.Indexed(snapshot), map[string]any{}}
		for _, name := range []string{"p0", "p1"} {
			decide := func(r olmcore.Reader) (olmcore.Result, int) {
				in, err := installplan.Gather(t.Context(), r, types.NamespacedName{Namespace: "ns", Name: name}, installplan.Config{})
				require.NoError(t, err)
				in.Now = Noon
				result, err := reconcileResult(in)
				require.NoError(t, err)
				return result, len(in.Subscriptions.Items)
			}
			want, _ := decide(snapshot)
			got, looked := decide(indexed)
			require.Empty(t, cmp.Diff(want, got))
			require.LessOrEqual(t, looked, 4, "the others have nothing to do with the plan")
		}
	})
}

func TestAffected(t *testing.T) {
	inNamespace, everywhere := []types.NamespacedName{{Namespace: NS}}, []types.NamespacedName{{}}
	named := metav1.ObjectMeta{Namespace: NS, Name: "x"}
	thing := func(kind, namespace string) olmcore.Object {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind})
		u.SetNamespace(namespace)
		u.SetName("x")
		return u
	}
	owning := CSV("x", versioned("1.0.0"))
	for name, c := range map[string]struct {
		object olmcore.Object
		want   []types.NamespacedName
	}{
		"a plan":                            {Plan(Complete, nil), []types.NamespacedName{{Namespace: NS}, key}},
		"a namespace":                       {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: NS}}, inNamespace},
		"a Subscription":                    {Subscription("x"), inNamespace},
		"a group":                           {Group(), inNamespace},
		"a version":                         {CSV("x"), inNamespace},
		"a version that owns definitions":   {owning, everywhere},
		"an account":                        {&corev1.ServiceAccount{ObjectMeta: named}, inNamespace},
		"a role":                            {&rbacv1.Role{ObjectMeta: named}, inNamespace},
		"a role of the cluster":             {&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, everywhere},
		"a definition":                      {CRDObject("v1"), everywhere},
		"registry credentials":              {&corev1.Secret{ObjectMeta: named, Type: corev1.SecretTypeDockerConfigJson}, everywhere},
		"a catalog that lists pull Secrets": {pullCatalog("pull"), everywhere},
		"a catalog without":                 {pullCatalog(), nil},
		"a token":                           {&corev1.Secret{ObjectMeta: named, Type: corev1.SecretTypeServiceAccountToken}, inNamespace},
		"an APIService":                     {served("v1beta1"), everywhere},
		"an APIService of definitions":      {served("v1", automanaged("true")), nil},
		"something of a namespace":          {thing("ServiceMonitor", NS), inNamespace},
		"something of the cluster":          {thing("ConsoleLink", ""), everywhere},
		"a Pod":                             {&corev1.Pod{ObjectMeta: named}, nil},
		"nothing":                           {nil, nil},
		"a nil plan in an interface value":  {(*v1alpha1.InstallPlan)(nil), nil},
	} {
		t.Run(name, func(t *testing.T) { Same(t, c.want, installplan.Affected(c.object)) })
	}
}

// TestAffectedContainsEveryPlanWhoseDecisionChanges checks that deleting an object changes only the decisions about
// plans that Affected returns.
func TestAffectedContainsEveryPlanWhoseDecisionChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := eitherInput(t)
		want, err := reconcileResult(in)
		require.NoError(t, err)
		differs := func(less installplan.Input, o olmcore.Object) {
			got, err := reconcileResult(less)
			require.NoError(t, err)
			if fmt.Sprint(Describe(want), Reasons(want), statusOf(in, want)) == fmt.Sprint(Describe(got), Reasons(got), statusOf(in, got)) {
				return
			}
			known := []types.NamespacedName{key}
			require.Contains(t, olmcore.ExpandKeys(installplan.Affected(o), known), key, "%s", olmcore.KeyOf(o))
		}
		for i := range in.Objects.Items {
			less := in
			less.Objects = without(in.Objects, i)
			differs(less, in.Objects.Items[i])
		}
		for i := range in.Subscriptions.Items {
			less := in
			less.Subscriptions = without(in.Subscriptions, i)
			differs(less, in.Subscriptions.Items[i])
		}
		for i := range in.ClusterServiceVersions.Items {
			less := in
			less.ClusterServiceVersions = without(in.ClusterServiceVersions, i)
			differs(less, in.ClusterServiceVersions.Items[i])
		}
		for _, crd := range in.CustomResourceDefinitions.Items {
			less := in
			less.CustomResourceDefinitions = olmcore.Found[*apiextensionsv1.CustomResourceDefinition]()
			differs(less, crd)
		}
		for _, g := range in.OperatorGroups.Items {
			less := in
			less.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup]()
			differs(less, g)
		}
	})
}

// TestEveryKindOfStepIsReadAndWatched reports what a new row of the table of kinds of steps lacks elsewhere.
func TestEveryKindOfStepIsReadAndWatched(t *testing.T) {
	for _, table := range []kinds.Table{kinds.Known, kinds.Supported} {
		for name, k := range table {
			if k.GVK.Empty() {
				continue // a CustomResourceDefinition defines it
			}
			known, ok := olmcore.KindOf(k.GVK.GroupKind())
			require.True(t, ok, "%s is no row of olmcore's table of kinds", name)
			require.Equal(t, known.Namespaced, k.Namespaced, name)
			require.False(t, k.Owned && k.Labelled || k.Owned && !k.Namespaced, "%s: neither owned nor labelled", name)
			o := olmcore.NewObject(k.GVK)
			o.SetName("x")
			if k.Namespaced {
				o.SetNamespace(NS)
			}
			require.NotEmpty(t, installplan.Affected(o), "%s: no plan is affected", name)
			if _, ok := kinds.Known[name]; ok {
				require.Contains(t, known.ReadBy, "installplan", "%s: olmcore's table of kinds does not say who reads it", name)
				_, untyped := o.(*unstructured.Unstructured)
				require.False(t, untyped, "%s has no Go type", name)
				require.NotEmpty(t, k.Word, name)
			}
		}
	}
}
