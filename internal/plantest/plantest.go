// SPDX-License-Identifier: Apache-2.0

// Package plantest has what the tests of package installplan and those below it share:
// objects of a namespace at noon, and the Inputs that are made of them.
package plantest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
)

// NS is the namespace of the objects, Noon the time of the Inputs, Born when the
// objects were created.
const NS = "ops"

var (
	Noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	Born = metav1.NewTime(Noon.Add(-time.Hour))
)

// Phases of plans and statuses of steps.
const (
	None             = v1alpha1.InstallPlanPhaseNone
	RequiresApproval = v1alpha1.InstallPlanPhaseRequiresApproval
	Installing       = v1alpha1.InstallPlanPhaseInstalling
	Complete         = v1alpha1.InstallPlanPhaseComplete
	Failed           = v1alpha1.InstallPlanPhaseFailed

	Unknown    = v1alpha1.StepStatusUnknown
	NotPresent = v1alpha1.StepStatusNotPresent
	Present    = v1alpha1.StepStatusPresent
	Created    = v1alpha1.StepStatusCreated
	WaitingAPI = v1alpha1.StepStatusWaitingForAPI
)

// Counting is a Reader that remembers what was read, and may fail.
type Counting struct {
	olmcore.Reader
	// Kinds counts the reads of each kind.
	Kinds map[string]int
	// Fail is the kind whose reads fail.
	Fail string
}

// Reader returns a Counting that reads objects.
func Reader(t *testing.T, objects ...olmcore.Object) Counting {
	t.Helper()
	s, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	return Counting{Reader: s, Kinds: map[string]int{}}
}

// Get implements olmcore.Reader.
func (c Counting) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	c.Kinds[gvk.Kind]++
	if gvk.Kind == c.Fail {
		return nil, errors.New("no answer")
	}
	return c.Reader.Get(ctx, gvk, namespace, name)
}

// List implements olmcore.Reader.
func (c Counting) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	c.Kinds[gvk.Kind]++
	if gvk.Kind == c.Fail {
		return nil, errors.New("no answer")
	}
	return c.Reader.List(ctx, gvk, namespace, selector)
}

func Ago(d time.Duration) *metav1.Time { return new(metav1.NewTime(Noon.Add(-d))) }

func Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: NS, Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", CreationTimestamp: Born}
}

func ClusterMeta(name string) metav1.ObjectMeta {
	m := Meta(name)
	m.Namespace = ""
	return m
}

// HandedOver is the metadata of an object that OLM manages.
func HandedOver(name string) metav1.ObjectMeta {
	m := Meta(name)
	m.Labels = map[string]string{"olm.managed": "true"}
	return m
}

func Subscription(name string, change ...func(*v1alpha1.Subscription)) *v1alpha1.Subscription {
	s := &v1alpha1.Subscription{ObjectMeta: Meta(name), Spec: &v1alpha1.SubscriptionSpec{
		Package: name, Channel: "stable", CatalogSource: "cool", CatalogSourceNamespace: "olm",
	}}
	for _, f := range change {
		f(s)
	}
	return s
}

func Manual(s *v1alpha1.Subscription) { s.Spec.InstallPlanApproval = v1alpha1.ApprovalManual }

func RefersTo(plan string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		s.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: NS, Name: plan, UID: types.UID("uid-" + plan)}
	}
}

func OwnerRef(s *v1alpha1.Subscription) metav1.OwnerReference { return olmcore.OwnerReferenceTo(s) }

func CSV(name string, change ...func(*v1alpha1.ClusterServiceVersion)) *v1alpha1.ClusterServiceVersion {
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: Meta(name)}
	c.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	for _, f := range change {
		f(c)
	}
	return c
}

func Group(change ...func(*operatorsv1.OperatorGroup)) *operatorsv1.OperatorGroup {
	g := &operatorsv1.OperatorGroup{ObjectMeta: Meta("group")}
	g.Status.Namespaces = []string{NS}
	for _, f := range change {
		f(g)
	}
	return g
}

// CRDObject is a CustomResourceDefinition of kind Thing as a bundle has it.
func CRDObject(versions ...string) *apiextensionsv1.CustomResourceDefinition {
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

// Installed is a CustomResourceDefinition as the cluster has it, handed to OLM.
func Installed(crd *apiextensionsv1.CustomResourceDefinition, established bool) *apiextensionsv1.CustomResourceDefinition {
	crd = crd.DeepCopy()
	m := ClusterMeta(crd.Name)
	m.Labels, _ = olmcore.MergeLabels(crd.Labels, map[string]string{"olm.managed": "true"})
	m.Annotations = crd.Annotations
	crd.ObjectMeta = m
	status := apiextensionsv1.ConditionFalse
	if established {
		status = apiextensionsv1.ConditionTrue
	}
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue, LastTransitionTime: Born},
		{Type: apiextensionsv1.Established, Status: status, LastTransitionTime: Born},
	}
	return crd
}

func Step(resolving, group, version, kind, name string, manifest any) *v1alpha1.Step {
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

func CSVStep(name string) *v1alpha1.Step {
	return Step(name, "operators.coreos.com", "v1alpha1", "ClusterServiceVersion", name,
		`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"`+name+`"},"spec":{"displayName":"Cool","install":{"strategy":"deployment"}}}`)
}

func RoleStep(resolving, name string) *v1alpha1.Step {
	return Step(resolving, "rbac.authorization.k8s.io", "v1", "Role", name, `{"metadata":{"name":"`+name+`"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`)
}

func CRDStep(resolving string, versions ...string) *v1alpha1.Step {
	return Step(resolving, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", CRDObject(versions...))
}

func WithStatus(status v1alpha1.StepStatus, s *v1alpha1.Step) *v1alpha1.Step {
	s.Status = status
	return s
}

func Plan(phase v1alpha1.InstallPlanPhase, steps []*v1alpha1.Step, change ...func(*v1alpha1.InstallPlan)) *v1alpha1.InstallPlan {
	p := &v1alpha1.InstallPlan{ObjectMeta: Meta("install-x")}
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
	if p.DeletionTimestamp != nil && phase != Complete && phase != Failed {
		Held(p)
	}
	return p
}

func Held(p *v1alpha1.InstallPlan) { p.Finalizers = []string{installplan.Finalizer} }

func Started(d time.Duration) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) { p.Status.StartTime = Ago(d) }
}

func OwnedBy(subs ...*v1alpha1.Subscription) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) {
		for _, s := range subs {
			p.OwnerReferences = append(p.OwnerReferences, OwnerRef(s))
			key, err := olmcore.ComponentLabelKey(s.Spec.Package, NS)
			if err != nil {
				panic(err)
			}
			p.Labels, _ = olmcore.MergeLabels(p.Labels, map[string]string{key: ""})
		}
	}
}

// Describe prints the actions of a result, one line each.
func Describe(r olmcore.Result) []string {
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

func Statuses(s v1alpha1.InstallPlanStatus) []v1alpha1.StepStatus {
	var out []v1alpha1.StepStatus
	for _, Step := range s.Plan {
		out = append(out, Step.Status)
	}
	return out
}

func Reasons(r olmcore.Result) []string {
	var out []string
	for _, d := range r.Diagnostics {
		out = append(out, d.Reason)
	}
	slices.Sort(out)
	return out
}

func Same(t testing.TB, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Refer puts the Subscriptions' references in front of what Create asks for.
func Refer(in create.Input, out create.Outcome) olmcore.Result {
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

// Installs is the resolution that installs bundles for the Subscriptions of
// their packages.
func Installs(operators ...olmcore.Operator) func([]*v1alpha1.Subscription) olmcore.Resolution {
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

func Operator(pkg string, objects ...olmcore.Object) olmcore.Operator {
	name := pkg + ".v1"
	all := []olmcore.Object{CSV(name, func(c *v1alpha1.ClusterServiceVersion) { c.ObjectMeta = metav1.ObjectMeta{Name: name} })}
	return olmcore.Operator{
		Name: name, Package: pkg, Channel: "stable", Version: "1.0.0", Catalog: types.NamespacedName{Namespace: "olm", Name: "cool"},
		Bundle: olmcore.Bundle{Objects: append(all, objects...)},
	}
}

func Rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}
}

// World is a cluster with a namespace that an OperatorGroup manages.
func World(t testing.TB, objects ...olmcore.Object) *fake.Cluster {
	t.Helper()
	c, err := NewWorld(objects...)
	require.NoError(t, err)
	return c
}

func NewWorld(objects ...olmcore.Object) (*fake.Cluster, error) {
	c := fake.NewCluster(Noon)
	c.AutoCreateNamespaces = true
	g := Group()
	g.ObjectMeta = metav1.ObjectMeta{Namespace: NS, Name: "group"}
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

const BundleImage = "quay.io/operatorhubio/etcd:v0.9.4"

// BundleName is the name of all objects that unpack bundleImage.
const BundleName = "fe3359f072ef3976d6cf0d56c20a540531916356d88290cd72c0b5916672ca0"

func UnpackedBundle(age time.Duration) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: Meta(BundleName)}
	cm.CreationTimestamp = *Ago(age)
	cm.Labels = map[string]string{"olm.managed": "true"}
	cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource", Name: "cool", UID: "uid-cool"}}
	return cm
}

func Reference() string {
	return `{"kind":"ConfigMap","name":"` + BundleName + `","namespace":"` + NS + `","catalogSourceName":"cool","catalogSourceNamespace":"` + NS + `","replaces":"","properties":""}`
}

// Numbered is a plan of a generation, as old as that says.
func Numbered(generation int, phase v1alpha1.InstallPlanPhase, change ...func(*v1alpha1.InstallPlan)) *v1alpha1.InstallPlan {
	p := Plan(phase, []*v1alpha1.Step{CSVStep("a.v1")}, change...)
	p.Spec.Generation = generation
	name := fmt.Sprintf("install-%d", generation)
	p.Name, p.UID = name, types.UID("uid-"+name)
	p.CreationTimestamp = metav1.NewTime(Noon.Add(time.Duration(generation-100) * time.Hour))
	return p
}

func Owned(p *v1alpha1.InstallPlan, subs ...*v1alpha1.Subscription) *v1alpha1.InstallPlan {
	OwnedBy(subs...)(p)
	return p
}

func Generated(by string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		s.Annotations = map[string]string{installplan.AnnotationGeneratedBy: by}
	}
}

func Current(name string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) { s.Status.CurrentCSV = name }
}

func InNamespace(name string) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) { p.Namespace = name }
}

func WithoutSteps(p *v1alpha1.InstallPlan) { p.Status = v1alpha1.InstallPlanStatus{} }

func Maybe(t *rapid.T, label string) bool { return rapid.Bool().Draw(t, label) }

func AnyMeta(t *rapid.T, name, namespace string) metav1.ObjectMeta {
	m := Meta(name)
	m.Namespace = namespace
	if Maybe(t, "managed") {
		m.Labels = map[string]string{olmcore.LabelManaged: "true", "theirs": "kept"}
	}
	if rapid.IntRange(0, 7).Draw(t, "deleting") == 0 {
		m.DeletionTimestamp = Ago(time.Second)
		m.Finalizers = []string{"theirs"}
	}
	if Maybe(t, "annotated") {
		m.Annotations, m.Finalizers = map[string]string{"theirs": "kept"}, []string{"theirs"}
	}
	if Maybe(t, "foreign") {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "theirs"}}
	}
	switch rapid.IntRange(0, 7).Draw(t, "planned") {
	case 0, 1: // by another plan
		m.OwnerReferences = append(m.OwnerReferences, olmcore.OwnerReferenceTo(CSV("b.v1")))
		m.Annotations, _ = olmcore.MergeLabels(m.Annotations, map[string]string{"olmcore/step-hash": "other"})
	case 2: // of another namespace
		m.Labels, _ = olmcore.MergeLabels(m.Labels, (olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: "there", Name: "a.v1", UID: "7"}).Labels())
	}
	return m
}

func AnySubscription(t *rapid.T, name string) *v1alpha1.Subscription {
	s := Subscription(name)
	s.ObjectMeta = AnyMeta(t, name, NS)
	s.UID = types.UID(rapid.SampledFrom([]string{"uid-" + name, "uid-" + name, "uid-" + name + "-again", ""}).Draw(t, "uid"))
	if Maybe(t, "recent") {
		s.CreationTimestamp = metav1.NewTime(Noon)
	}
	switch rapid.IntRange(0, 3).Draw(t, "ref") {
	case 0:
		RefersTo("install-x")(s)
	case 1:
		RefersTo("install-y")(s)
	}
	if Maybe(t, "manual") {
		Manual(s)
	}
	if rapid.IntRange(0, 3).Draw(t, "generated") == 0 {
		s.Annotations = map[string]string{installplan.AnnotationGeneratedBy: "install-x"}
	}
	if rapid.IntRange(0, 9).Draw(t, "spec") == 0 {
		s.Spec = nil
	}
	return s
}

var Images = installplan.Config{OPMImage: "opm:1", UtilImage: "util:1"}

// Lookup is the lookup of the image of etcd.v1, as it is before anything is unpacked.
func Lookup(require.TestingT) v1alpha1.BundleLookup {
	at := metav1.NewTime(Noon.Add(-time.Minute))
	return v1alpha1.BundleLookup{
		Path: BundleImage, Identifier: "etcd.v1", Properties: "{}", CatalogSourceRef: &corev1.ObjectReference{Namespace: "olm", Name: "cool"},
		Conditions: []v1alpha1.BundleLookupCondition{
			{Type: "BundleLookupNotPersisted", Status: corev1.ConditionTrue, Reason: "BundleNotUnpacked",
				Message: "bundle contents have not yet been persisted to installplan status", LastTransitionTime: &at},
			{Type: v1alpha1.BundleLookupPending, Status: corev1.ConditionTrue, Reason: "JobNotStarted",
				Message: "unpack job not yet started", LastTransitionTime: &at},
		},
	}
}

func InOLM(name string) metav1.ObjectMeta {
	m := Meta(name)
	m.Namespace = "olm"
	return m
}

const EtcdCSV = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: etcd.v1}
spec: {install: {strategy: deployment}}
`

func Filled(files map[string]string) *corev1.ConfigMap {
	cm := UnpackedBundle(time.Hour)
	cm.Namespace = "olm"
	cm.Annotations = map[string]string{"olm.sourceImage": BundleImage}
	cm.Data = files
	return cm
}

func Zipped(t testing.TB, text string) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return []byte(base64.StdEncoding.EncodeToString(buf.Bytes()))
}

func CreateInput(subs []*v1alpha1.Subscription, operators ...olmcore.Operator) create.Input {
	return create.Input{Now: Noon, Namespace: NS, Subscriptions: olmcore.Found(subs...), Resolution: Installs(operators...)(subs)}
}

func Planned(t testing.TB, in create.Input) create.Outcome {
	t.Helper()
	out, err := create.Plan(Completed(in))
	require.NoError(t, err)
	return out
}

// Completed says that what the input lacks does not exist.
func Completed(in create.Input) create.Input {
	in.Subscriptions.Complete, in.InstallPlans.Complete, in.OperatorGroups.Complete = true, true, true
	in.ClusterServiceVersions.Complete, in.ConfigMaps.Complete = true, true
	return in
}

// Made returns the plan that Create asks for, as the cluster then has it.
func Made(t testing.TB, out create.Outcome) *v1alpha1.InstallPlan {
	t.Helper()
	require.Len(t, out.Actions, 1)
	p := out.Actions[0].(olmcore.Create).Object.DeepCopyObject().(*v1alpha1.InstallPlan)
	p.UID, p.ResourceVersion, p.CreationTimestamp = "uid-plan", "1", metav1.NewTime(Noon)
	return p
}

// Referring returns the Subscriptions as they refer to a plan.
func Referring(subs []*v1alpha1.Subscription, p *v1alpha1.InstallPlan) []*v1alpha1.Subscription {
	var out []*v1alpha1.Subscription
	for _, s := range subs {
		s = s.DeepCopy()
		s.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: NS, Name: p.Name, UID: p.UID}
		out = append(out, s)
	}
	return out
}

func Bare(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// Rich is an operator with an object of nearly every kind.
func Rich() olmcore.Operator {
	crd := CRDObject("v1")
	monitor := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "thing"},
	}}
	o := Operator("rich", crd, monitor,
		&corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: Bare("service"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: Bare("config"), Data: map[string]string{"a": "1"}},
		&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: Bare("role"), Rules: Rules()},
		&rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"}, ObjectMeta: Bare("binding"),
			RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "role"}},
	)
	o.Bundle.Objects[0].(*v1alpha1.ClusterServiceVersion).Spec.InstallStrategy.StrategySpec.ClusterPermissions =
		[]v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "rich", Rules: Rules()}}
	return o
}

var Things = installplan.Config{SupportedKinds: []string{"Thing"}}

func UserSubscription(name string, change ...func(*v1alpha1.Subscription)) *v1alpha1.Subscription {
	s := Subscription(name, change...)
	s.ObjectMeta = metav1.ObjectMeta{Namespace: NS, Name: name}
	return s
}

func PublishedOperator(b realdata.Bundle) olmcore.Operator {
	o := olmcore.Operator{Package: b.Operator, Channel: "stable", Version: b.Version, Catalog: types.NamespacedName{Namespace: "olm", Name: "cool"}}
	o.Bundle.Objects = b.Objects
	for _, object := range b.Objects {
		if c, ok := object.(*v1alpha1.ClusterServiceVersion); ok {
			o.Name, o.Replaces = c.Name, c.Spec.Replaces
		}
	}
	return o
}

// Scoped is a group that prescribes an account, which its status confirms.
func Scoped(name string) *operatorsv1.OperatorGroup {
	return Group(func(g *operatorsv1.OperatorGroup) {
		g.Spec.ServiceAccountName, g.Status.ServiceAccountRef = name, &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: NS, Name: name}
	})
}

func Condition(status corev1.ConditionStatus, reason v1alpha1.InstallPlanConditionReason, message string) v1alpha1.InstallPlanCondition {
	return v1alpha1.InstallPlanCondition{
		Type: v1alpha1.InstallPlanInstalled, Status: status, Reason: reason, Message: message,
		LastUpdateTime: new(metav1.NewTime(Noon)), LastTransitionTime: new(metav1.NewTime(Noon)),
	}
}

// ImageOf turns an operator with inline objects into one with an image, and
// returns the ConfigMap that the image is unpacked into.
func ImageOf(t testing.TB, o olmcore.Operator) (olmcore.Operator, *corev1.ConfigMap) {
	cm := Filled(nil)
	cm.OwnerReferences = nil // no catalog in these worlds
	cm.Annotations["olm.contentEncoding"] = "gzip+base64"
	cm.BinaryData = map[string][]byte{}
	for i, object := range o.Bundle.Objects {
		values, err := olmcore.ToMap(object)
		require.NoError(t, err)
		data, err := json.Marshal(values)
		require.NoError(t, err)
		cm.BinaryData[fmt.Sprintf("%03d.json", i)] = Zipped(t, string(data))
	}
	o.Bundle.Image, o.Bundle.Objects = BundleImage, nil
	o.Bundle.Properties = []olmcore.Property{{Type: "olm.package", Value: json.RawMessage(`{"packageName":"x"}`)}}
	return o, cm
}

func ConditionsOf(l v1alpha1.BundleLookup) []string {
	var out []string
	for _, c := range l.Conditions {
		if c.Type != "BundleLookupNotPersisted" {
			out = append(out, fmt.Sprintf("%s %s: %s", strings.TrimPrefix(string(c.Type), "BundleLookup"), c.Reason, c.Message))
		}
	}
	return out
}

func SweepInput(objects ...olmcore.Object) sweep.Input {
	in := sweep.Input{
		Now: Noon, Namespace: NS, Namespaces: olmcore.Found(&corev1.Namespace{ObjectMeta: ClusterMeta(NS)}),
		Subscriptions: olmcore.Found[*v1alpha1.Subscription](), InstallPlans: olmcore.Found[*v1alpha1.InstallPlan](),
		ConfigMaps: olmcore.Found[*corev1.ConfigMap](), OtherPlans: olmcore.Found[*v1alpha1.InstallPlan](),
	}
	for _, o := range objects {
		switch x := o.(type) {
		case *v1alpha1.Subscription:
			in.Subscriptions.Items = append(in.Subscriptions.Items, x)
		case *v1alpha1.InstallPlan:
			if x.Namespace == NS {
				in.InstallPlans.Items = append(in.InstallPlans.Items, x)
			} else {
				in.OtherPlans.Items = append(in.OtherPlans.Items, x)
			}
		case *corev1.ConfigMap:
			in.ConfigMaps.Items = append(in.ConfigMaps.Items, x)
		}
	}
	return in
}

func SweepResult(in sweep.Input) (olmcore.Result, error) {
	out, err := sweep.Reconcile(in)
	return out.Result, err
}

func Swept(t require.TestingT, in sweep.Input) olmcore.Result {
	result, err := SweepResult(in)
	require.NoError(t, err)
	return result
}

// DrawRelations draws Subscriptions and plans of one namespace that have to do with each
// other in all ways, and eight more Subscriptions without plans.
func DrawRelations(t *rapid.T) (objects, others []olmcore.Object) {
	one := func(label string, names ...string) string { return rapid.SampledFrom(names).Draw(t, label) }
	for i := range 4 {
		s := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("s", i), UID: types.UID(fmt.Sprint("u", i))}}
		s.Spec = &v1alpha1.SubscriptionSpec{Package: one("package", "a", "b", "c"), InstallPlanApproval: v1alpha1.Approval(one("approval", "Manual", "Automatic"))}
		s.Status.CurrentCSV = one("current", "", "v1", "v2")
		if from := one("generated by", "", "p0", "p1"); from != "" {
			s.Annotations = map[string]string{installplan.AnnotationGeneratedBy: from}
		}
		if ref := one("ref", "", "p0", "p1", "p9"); ref != "" {
			s.Status.InstallPlanRef = &corev1.ObjectReference{Name: ref, UID: types.UID(one("ref UID", "", "p0-uid", "p1-uid"))}
			s.Status.InstallPlanGeneration = rapid.IntRange(0, 3).Draw(t, "ref generation")
		}
		objects = append(objects, s)
	}
	for _, name := range []string{"p0", "p1"} {
		objects = append(objects, DrawPlan(t, name))
	}
	for i := range 8 {
		s := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("t", i), UID: types.UID(fmt.Sprint("t", i))}}
		s.Spec = &v1alpha1.SubscriptionSpec{Package: "other"}
		others = append(others, s)
	}
	return objects, others
}

func DrawPlan(t *rapid.T, name string) *v1alpha1.InstallPlan {
	one := func(label string, names ...string) string { return rapid.SampledFrom(names).Draw(t, label) }
	p := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid"), ResourceVersion: "1"}}
	p.Spec.ClusterServiceVersionNames = []string{one("brings", "v1", "v2")}
	p.Spec.Generation = rapid.IntRange(0, 3).Draw(t, "generation")
	p.Spec.Approval, p.Spec.Approved = v1alpha1.Approval(one("approval", "Manual", "Automatic")), rapid.Bool().Draw(t, "approved")
	p.Status.Phase = v1alpha1.InstallPlanPhase(one("phase", "Complete", "Failed", "RequiresApproval", "Installing", ""))
	for _, version := range rapid.SliceOfN(rapid.SampledFrom([]string{"v1", "v2"}), 0, 2).Draw(t, "steps") {
		p.Status.Plan = append(p.Status.Plan, CSVStep(version), SubscriptionStep(version, one("makes", "s0", "s3", "s9")))
	}
	if rapid.Bool().Draw(t, "started") {
		p.Status.StartTime = Ago(time.Minute)
	}
	if rapid.Bool().Draw(t, "finalizer") {
		p.Finalizers = []string{installplan.Finalizer}
	}
	list := func(label string, values ...string) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(values), 0, 2).Draw(t, label), ",")
	}
	p.Annotations = map[string]string{olmcore.KeyPrefix + "contributors": list("contributors", "", "u0", "u1"), olmcore.KeyPrefix + "packages": list("packages", "a", "b")}
	p.Labels = map[string]string{olmcore.ComponentLabelPrefix + one("label", "a", "b", "d") + ".ns": ""}
	for _, uid := range rapid.SliceOfN(rapid.SampledFrom([]string{"u0", "u2", "u9"}), 0, 2).Draw(t, "owners") {
		p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{Kind: "Subscription", Name: "s0", UID: types.UID(uid)})
	}
	return p
}

func SubscriptionStep(version, name string) *v1alpha1.Step {
	return Step(version, v1alpha1.GroupName, "v1alpha1", "Subscription", name, `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription","metadata":{"name":"`+name+`"},"spec":{"name":"c"}}`)
}

// Shown is an object without what only its cluster knows; owners are named.
func Shown(t testing.TB, c *fake.Cluster, o olmcore.Object) string {
	t.Helper()
	values, err := olmcore.ToMap(o)
	require.NoError(t, err)
	metadata := values["metadata"].(map[string]any)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation"} {
		delete(metadata, field)
	}
	delete(values, "status")
	annotations, _ := metadata["annotations"].(map[string]any)
	if delete(annotations, "olmcore/step-hash"); len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	var owners []any
	for _, ref := range o.GetOwnerReferences() {
		owner := "nobody"
		for _, candidate := range c.Objects() {
			if candidate.GetUID() == ref.UID {
				owner = ref.Kind + " " + ref.Name
			}
		}
		owners = append(owners, owner)
	}
	if delete(metadata, "ownerReferences"); owners != nil {
		metadata["owners"] = owners
	}
	if labels, _ := metadata["labels"].(map[string]any); labels["olm.owner.uid"] != nil {
		labels["olm.owner.uid"] = "some"
	}
	text, err := yaml.Marshal(values)
	require.NoError(t, err)
	return string(text)
}

func Normal(t testing.TB, text string) string {
	t.Helper()
	var v any
	require.NoError(t, yaml.Unmarshal([]byte(text), &v))
	out, err := yaml.Marshal(v)
	require.NoError(t, err)
	return string(out)
}
