// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/olmcore"
)

const ns = "ops"

var (
	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	born = metav1.NewTime(noon.Add(-time.Hour))
)

func ago(d time.Duration) *metav1.Time { return new(metav1.NewTime(noon.Add(-d))) }

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", CreationTimestamp: born}
}

func clusterMeta(name string) metav1.ObjectMeta {
	m := meta(name)
	m.Namespace = ""
	return m
}

// handedOver is the metadata of an object that OLM manages.
func handedOver(name string) metav1.ObjectMeta {
	m := meta(name)
	m.Labels = map[string]string{"olm.managed": "true"}
	return m
}

func subscription(name string, change ...func(*v1alpha1.Subscription)) *v1alpha1.Subscription {
	s := &v1alpha1.Subscription{ObjectMeta: meta(name), Spec: &v1alpha1.SubscriptionSpec{
		Package: name, Channel: "stable", CatalogSource: "cool", CatalogSourceNamespace: "olm",
	}}
	for _, f := range change {
		f(s)
	}
	return s
}

func manual(s *v1alpha1.Subscription) { s.Spec.InstallPlanApproval = v1alpha1.ApprovalManual }

func refersTo(plan string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		s.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: ns, Name: plan, UID: types.UID("uid-" + plan)}
	}
}

func ownerRef(s *v1alpha1.Subscription) metav1.OwnerReference { return olmcore.OwnerReferenceTo(s) }

func csv(name string, change ...func(*v1alpha1.ClusterServiceVersion)) *v1alpha1.ClusterServiceVersion {
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: meta(name)}
	c.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	for _, f := range change {
		f(c)
	}
	return c
}

func group(change ...func(*operatorsv1.OperatorGroup)) *operatorsv1.OperatorGroup {
	g := &operatorsv1.OperatorGroup{ObjectMeta: meta("group")}
	g.Status.Namespaces = []string{ns}
	for _, f := range change {
		f(g)
	}
	return g
}

// crdObject is a CustomResourceDefinition of kind Thing as a bundle has it.
func crdObject(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Thing", Plural: "things", ListKind: "ThingList", Singular: "thing"},
		},
	}
	for i, v := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v, Served: true, Storage: i == len(versions)-1,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Description: v}},
		})
	}
	return crd
}

// installed is a CustomResourceDefinition as the cluster has it, handed to OLM.
func installed(crd *apiextensionsv1.CustomResourceDefinition, established bool) *apiextensionsv1.CustomResourceDefinition {
	crd = crd.DeepCopy()
	m := clusterMeta(crd.Name)
	m.Labels, _ = olmcore.MergeLabels(crd.Labels, map[string]string{"olm.managed": "true"})
	m.Annotations = crd.Annotations
	crd.ObjectMeta = m
	status := apiextensionsv1.ConditionFalse
	if established {
		status = apiextensionsv1.ConditionTrue
	}
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue, LastTransitionTime: born},
		{Type: apiextensionsv1.Established, Status: status, LastTransitionTime: born},
	}
	return crd
}

func step(resolving, group, version, kind, name string, manifest any) *v1alpha1.Step {
	text, ok := manifest.(string)
	if !ok {
		data, err := json.Marshal(manifest)
		if err != nil {
			panic(err)
		}
		text = string(data)
	}
	return &v1alpha1.Step{Resolving: resolving, Status: v1alpha1.StepStatusUnknown, Resource: v1alpha1.StepResource{
		Group: group, Version: version, Kind: kind, Name: name, Manifest: text, CatalogSource: "cool", CatalogSourceNamespace: "olm",
	}}
}

func csvStep(name string) *v1alpha1.Step {
	return step(name, "operators.coreos.com", "v1alpha1", "ClusterServiceVersion", name,
		`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"`+name+`"},"spec":{"displayName":"Cool","install":{"strategy":"deployment"}}}`)
}

func roleStep(resolving, name string) *v1alpha1.Step {
	return step(resolving, "rbac.authorization.k8s.io", "v1", "Role", name, `{"metadata":{"name":"`+name+`"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`)
}

func crdStep(resolving string, versions ...string) *v1alpha1.Step {
	return step(resolving, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", crdObject(versions...))
}

func withStatus(status v1alpha1.StepStatus, s *v1alpha1.Step) *v1alpha1.Step {
	s.Status = status
	return s
}

func plan(phase v1alpha1.InstallPlanPhase, steps []*v1alpha1.Step, change ...func(*v1alpha1.InstallPlan)) *v1alpha1.InstallPlan {
	p := &v1alpha1.InstallPlan{ObjectMeta: meta("install-x")}
	p.Spec = v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalAutomatic, Approved: true, Generation: 1, ClusterServiceVersionNames: []string{}}
	p.Status = v1alpha1.InstallPlanStatus{Phase: phase, Plan: steps, CatalogSources: []string{"cool"}}
	for _, s := range steps {
		if s != nil && s.Resource.Kind == "ClusterServiceVersion" {
			p.Spec.ClusterServiceVersionNames = append(p.Spec.ClusterServiceVersionNames, s.Resource.Name)
		}
	}
	for _, f := range change {
		f(p)
	}
	if p.DeletionTimestamp != nil && phase != complete && phase != failed {
		held(p)
	}
	return p
}

func held(p *v1alpha1.InstallPlan) { p.Finalizers = []string{installplan.Finalizer} }

func started(d time.Duration) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) { p.Status.StartTime = ago(d) }
}

func ownedBy(subs ...*v1alpha1.Subscription) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) {
		for _, s := range subs {
			p.OwnerReferences = append(p.OwnerReferences, ownerRef(s))
			key, err := olmcore.ComponentLabelKey(s.Spec.Package, ns)
			if err != nil {
				panic(err)
			}
			p.Labels, _ = olmcore.MergeLabels(p.Labels, map[string]string{key: ""})
		}
	}
}

func input(p *v1alpha1.InstallPlan, change ...func(*installplan.Input)) installplan.Input {
	in := installplan.Input{Now: noon, InstallPlan: p, OperatorGroups: []*operatorsv1.OperatorGroup{group()}}
	for _, f := range change {
		f(&in)
	}
	return in
}

func with(objects ...olmcore.Object) func(*installplan.Input) {
	return func(in *installplan.Input) {
		for _, o := range objects {
			switch x := o.(type) {
			case *v1alpha1.Subscription:
				in.Subscriptions = append(in.Subscriptions, x)
			case *v1alpha1.ClusterServiceVersion:
				if x.Namespace == ns {
					in.ClusterServiceVersions = append(in.ClusterServiceVersions, x)
				} else {
					in.Alongside = append(in.Alongside, x)
				}
			case *apiextensionsv1.CustomResourceDefinition:
				in.CustomResourceDefinitions = append(in.CustomResourceDefinitions, x)
			default:
				in.Objects = append(in.Objects, o)
			}
		}
	}
}

func reconcile(t testing.TB, in installplan.Input) olmcore.Result {
	t.Helper()
	result, err := installplan.Reconcile(in)
	require.NoError(t, err)
	return result
}

func assess(t require.TestingT, in installplan.Input) installplan.Assessment {
	a, err := installplan.Assess(in)
	require.NoError(t, err)
	return a
}

// statusOf returns the status that a round stores, the plan's own when none.
func statusOf(in installplan.Input, r olmcore.Result) v1alpha1.InstallPlanStatus {
	if p, ok := olmcore.StatusOf[*v1alpha1.InstallPlan](r.Actions); ok {
		return p.Status
	}
	return in.InstallPlan.Status
}

// describe prints the actions of a result, one line each.
func describe(r olmcore.Result) []string {
	lines := []string{}
	for _, a := range r.Actions {
		verb, target, cause := a.Describe()
		line := fmt.Sprintf("%s %s (%s)", verb, target, cause.Reason)
		if as := a.Identity(); as != nil {
			line += " as " + as.Name
		}
		lines = append(lines, line)
	}
	return lines
}

func statuses(s v1alpha1.InstallPlanStatus) []v1alpha1.StepStatus {
	var out []v1alpha1.StepStatus
	for _, step := range s.Plan {
		out = append(out, step.Status)
	}
	return out
}

func reasons(r olmcore.Result) []string {
	var out []string
	for _, d := range r.Diagnostics {
		out = append(out, d.Reason)
	}
	slices.Sort(out)
	return out
}

func same(t testing.TB, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// plans is the controller of this package alone.
func plans(config installplan.Config) fake.Controller {
	return fake.Controller{
		Name: "installplan", Kind: v1alpha1.SchemeGroupVersion.WithKind("InstallPlan").GroupKind(),
		Keys: fake.KeysOf(v1alpha1.SchemeGroupVersion.WithKind("InstallPlan")),
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
			in, err := installplan.Gather(ctx, r, key, config)
			if err != nil {
				return olmcore.Result{}, err
			}
			in.Now, in.LastRun = now, last
			return installplan.Reconcile(in)
		},
	}
}

// makers creates plans of one resolution, and writes the references of its
// Subscriptions as the package that owns them does.
func makers(resolution func(subs []*v1alpha1.Subscription) olmcore.Resolution, config installplan.Config) fake.Controller {
	return fake.Controller{
		Name: "maker", Kind: v1alpha1.SchemeGroupVersion.WithKind("Subscription").GroupKind(),
		Keys: fake.NamespacesOf(v1alpha1.SchemeGroupVersion.WithKind("Subscription")),
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
			subs, err := olmcore.List[*v1alpha1.Subscription](ctx, r, key.Namespace, nil)
			if err != nil {
				return olmcore.Result{}, err
			}
			in, err := create.Gather(ctx, r, key.Namespace, resolution(subs), config)
			if err != nil {
				return olmcore.Result{}, err
			}
			in.Now = now
			out, err := create.Plan(in)
			return refer(in, out), err
		},
	}
}

// refer puts the Subscriptions' references in front of what Create asks for.
func refer(in create.Input, out create.Outcome) olmcore.Result {
	if out.Plan.Name == "" {
		return out.Result
	}
	result := out.Result
	var writes []olmcore.Action
	for _, d := range in.Resolution.Decisions {
		for _, s := range in.Subscriptions.Items {
			if s.Name != d.Name || !slices.Contains(out.Subscriptions, s.Name) || s.Status.InstallPlanRef != nil && s.Status.InstallPlanRef.UID == out.Plan.UID {
				continue
			}
			after := s.DeepCopy()
			after.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: out.Plan.Namespace, Name: out.Plan.Name, UID: out.Plan.UID}
			after.Status.InstallPlanGeneration, after.Status.CurrentCSV = out.Generation, d.CurrentCSV
			after.Status.LastUpdated = olmcore.Timestamp(in.Now)
			writes = append(writes, olmcore.UpdateStatusOf(s, after, olmcore.Cause{Reason: "Refer"}))
		}
	}
	result.Actions = append(writes, result.Actions...)
	return result
}

// installs is the resolution that installs bundles for the Subscriptions of
// their packages.
func installs(operators ...olmcore.Operator) func([]*v1alpha1.Subscription) olmcore.Resolution {
	return func(subs []*v1alpha1.Subscription) olmcore.Resolution {
		var r olmcore.Resolution
		for _, s := range subs {
			r.Observed = append(r.Observed, olmcore.FingerprintOf(s))
			d := olmcore.SubscriptionDecision{Name: s.Name, CurrentCSV: s.Status.CurrentCSV}
			for _, o := range operators {
				if s.Spec.Package == o.Package {
					d.CurrentCSV, d.Changed = o.Name, s.Status.CurrentCSV != o.Name
				}
			}
			r.Decisions = append(r.Decisions, d)
		}
		for _, o := range operators {
			for _, s := range subs {
				if s.Spec.Package == o.Package {
					o.For = append(slices.Clone(o.For), s.Name)
				}
			}
			r.Operators = append(r.Operators, o)
		}
		return r
	}
}

func operator(pkg string, objects ...olmcore.Object) olmcore.Operator {
	name := pkg + ".v1"
	all := []olmcore.Object{csv(name, func(c *v1alpha1.ClusterServiceVersion) { c.ObjectMeta = metav1.ObjectMeta{Name: name} })}
	return olmcore.Operator{
		Name: name, Package: pkg, Channel: "stable", Version: "1.0.0", Catalog: types.NamespacedName{Namespace: "olm", Name: "cool"},
		Bundle: olmcore.Bundle{Objects: append(all, objects...)},
	}
}

func rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}
}

// world is a cluster with a namespace that an OperatorGroup manages.
func world(t testing.TB, objects ...olmcore.Object) *fake.Cluster {
	t.Helper()
	c, err := newWorld(objects...)
	require.NoError(t, err)
	return c
}

func newWorld(objects ...olmcore.Object) (*fake.Cluster, error) {
	c := fake.NewCluster(noon)
	c.AutoCreateNamespaces = true
	g := group()
	g.ObjectMeta = metav1.ObjectMeta{Namespace: ns, Name: "group"}
	if err := c.Create(g); err != nil {
		return nil, err
	}
	if err := c.UpdateStatus(g); err != nil {
		return nil, err
	}
	for _, o := range objects {
		o = o.DeepCopyObject().(olmcore.Object)
		o.SetUID("")
		o.SetResourceVersion("")
		o.SetCreationTimestamp(metav1.Time{})
		if err := c.Create(o); err != nil {
			return nil, err
		}
	}
	return c, c.Settle()
}

func alongsideHash(s string) string {
	h := fnv.New64a()
	h.Write([]byte(s))
	return fmt.Sprintf("%x", h.Sum64())
}
