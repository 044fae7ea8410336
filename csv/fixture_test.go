// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

type (
	phaseName = v1alpha1.ClusterServiceVersionPhase
	reason    = v1alpha1.ConditionReason
)

const (
	none         = csvtest.None
	pending      = csvtest.Pending
	installReady = csvtest.InstallReady
	installing   = csvtest.Installing
	succeeded    = csvtest.Succeeded
	failed       = csvtest.Failed
	replacing    = csvtest.Replacing
	deleting     = csvtest.Deleting
)

var (
	now, ago                       = csvtest.Now, csvtest.Ago
	operator, hold, deploymentSpec = csvtest.Operator, csvtest.Hold, csvtest.DeploymentSpec
	group, namespace               = csvtest.Group, csvtest.Namespace
	ours, ownerCSV, cool, copied   = csvtest.Ours, csvtest.OwnedBy, csvtest.Cool, csvtest.Copied
	ourConversion, deletions       = csvtest.Conversion, csvtest.Deletions
	printRecords                   = csvtest.PrintRecords
	release                        = []string{"update ClusterServiceVersion cool.v1"}
)

// input returns a world in which operator v1 has everything that it requires except its Deployment. Its status is an
// hour old.
func input(phase phaseName, why reason, message string) csv.Input {
	c := operator("cool.v1", 1)
	hold(c, phase, why, message, time.Hour)
	in := csv.Input{
		Now: now, ClusterServiceVersion: c, KubernetesVersion: kubernetesVersion,
		OperatorGroups: olmcore.Found(group()), Neighbours: olmcore.Found[*v1alpha1.ClusterServiceVersion](),
		OtherGroups:               olmcore.Found[*operatorsv1.OperatorGroup](),
		OtherProviders:            olmcore.Found[*v1alpha1.ClusterServiceVersion](),
		Subscriptions:             olmcore.Found[*v1alpha1.Subscription](),
		CustomResourceDefinitions: olmcore.Found(establishedCRD()),
		ServiceAccounts:           olmcore.Found(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool", UID: "sa"}}),
		Roles: olmcore.Found(&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool", UID: "role"},
			Rules:      c.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules,
		}),
		RoleBindings: olmcore.Found(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool", UID: "binding"},
			RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: "cool"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "cool", Namespace: "ns"}},
		}),
		ClusterRoles: olmcore.Found[*rbacv1.ClusterRole](), ClusterRoleBindings: olmcore.Found[*rbacv1.ClusterRoleBinding](),
		APIServices: olmcore.Found[*apiregistrationv1.APIService](), Serving: csvtest.NothingServed(),
		Deployments: olmcore.Found[*appsv1.Deployment](), Grants: olmcore.Found[olmcore.Ref](), OperatorConditions: olmcore.Found[*operatorsv2.OperatorCondition](),
	}
	return in
}

func establishedCRD() *apiextensionsv1.CustomResourceDefinition {
	crd := definition("example.com", "Cool", "cools", "v1")
	crd.UID, crd.ResourceVersion = "crd", "7"
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue},
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
	}
	return crd
}

// cameAlongside records on a CRD that it was installed with a CSV, as an InstallPlan does.
func cameAlongside(crd *apiextensionsv1.CustomResourceDefinition, csv string) {
	crd.Annotations = map[string]string{"operatorframework.io/installed-alongside-1": csv}
}

// deploy adds the Deployments that an InstallReady CSV writes. They are available.
func deploy(t testing.TB, in *csv.Input) {
	t.Helper()
	ready := *in
	ready.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
	hold(ready.ClusterServiceVersion, installReady, "AllRequirementsMet", "all requirements found, attempting install", 0)
	ready.Deployments = olmcore.Found[*appsv1.Deployment]()
	ready.Neighbours.Items, ready.LastRun = nil, nil
	out := reconciled(t, ready)
	for _, a := range out.Actions {
		create, ok := a.(olmcore.Create)
		require.True(t, ok, "%v", a)
		d := create.Object.(*appsv1.Deployment)
		d.UID, d.ResourceVersion, d.Generation = types.UID("deployment-"+d.Name), "20", 1
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
		}}
		in.Deployments.Items = append(in.Deployments.Items, d)
	}
}

// moves returns the Result that changes the status of an Input's CSV.
func moves(in csv.Input, to phaseName, why reason, message string) olmcore.Result {
	before := in.ClusterServiceVersion
	after := before.DeepCopy()
	s := &after.Status
	at := metav1.NewTime(now)
	s.LastUpdateTime = &at
	if s.Phase != to {
		s.LastTransitionTime = &at
	}
	moved := s.Phase != to || s.Reason != why
	s.Phase, s.Reason, s.Message = to, why, message
	res := olmcore.Result{}
	if moved {
		s.Conditions = append(s.Conditions, v1alpha1.ClusterServiceVersionCondition{
			Phase: to, Reason: why, Message: message, LastUpdateTime: s.LastUpdateTime, LastTransitionTime: s.LastTransitionTime,
		})
		res.Transitions = []olmcore.Transition{{
			Target: olmcore.RefOf(before), Type: "Phase", From: string(before.Status.Phase), To: string(to),
			Reason: string(why), Message: message, At: at, Bound: olmcore.NotAfter, Certainty: olmcore.CertaintyObserved,
		}}
	}
	res.Actions = []olmcore.Action{olmcore.UpdateStatusOf(before, after, olmcore.Cause{Reason: csv.ReasonStatusChanged, Message: message})}
	return res
}

// reporting adds a requirement report to the status that a Result writes.
func reporting(res olmcore.Result, report ...v1alpha1.RequirementStatus) olmcore.Result {
	after, _ := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](res.Actions)
	after.Status.RequirementStatus = report
	return res
}

func requeue(res olmcore.Result, d time.Duration) olmcore.Result {
	res.RequeueAfter = d
	return res
}

// metReport is the report of input's CSV.
func metReport() []v1alpha1.RequirementStatus {
	return []v1alpha1.RequirementStatus{
		{
			Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "cools.example.com",
			Status: "Present", Message: "CRD is present and Established condition is true", UUID: "crd",
		},
		{Version: "v1", Kind: "ServiceAccount", Name: "cool", Status: "Present", Dependents: []v1alpha1.DependentStatus{{
			Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "PolicyRule", Status: "Satisfied",
			Message: `namespaced rule:{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}`,
		}}},
	}
}

func check(t *testing.T, in csv.Input, want olmcore.Result) {
	t.Helper()
	got := reconciled(t, in)
	if diff := cmp.Diff(want, got.Result); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func metadataOf(a olmcore.Action) (*v1alpha1.ClusterServiceVersion, bool) {
	u, ok := a.(olmcore.Update)
	if !ok {
		return nil, false
	}
	c, ok := u.After.(*v1alpha1.ClusterServiceVersion)
	return c, ok
}

// reconciled is csv.Reconcile of a valid Input.
func reconciled(t require.TestingT, in csv.Input) csv.Outcome {
	out, err := csv.Reconcile(in)
	require.NoError(t, err)
	return out
}

// assess is csv.Assess of a valid Input.
func assess(t require.TestingT, in csv.Input) csv.Assessment {
	a, err := csv.Assess(in)
	require.NoError(t, err)
	return a
}

type edge = olmcore.Edge[phaseName]

// outcome returns the Outcome of csv.Reconcile without the memory for the next call.
func outcome(in csv.Input) (csv.Outcome, error) {
	out, err := csv.Reconcile(in)
	out.Inspected, out.Checkpoint = nil, nil
	return out, err
}

// checkpointOf returns the Checkpoint of the Outcome for an Input.
func checkpointOf(in csv.Input) *olmcore.Checkpoint {
	out, err := csv.Reconcile(in)
	if err != nil {
		return nil
	}
	return out.Checkpoint
}

// healthy returns the installed CSV of input.
func healthy(t testing.TB) csv.Input {
	t.Helper()
	in := input(succeeded, "InstallSucceeded", wellDone)
	deploy(t, &in)
	return in
}

// deleted returns an Input whose CSV was deleted ten seconds ago. Only its Deployments must be cleaned up.
func deleted(in csv.Input) csv.Input {
	in.ClusterServiceVersion.DeletionTimestamp, in.Deletion = ago(10*time.Second), csvtest.Deletion()
	return in
}

// leaving returns a healthy operator that is being deleted.
func leaving(t *testing.T) csv.Input {
	in := healthy(t)
	cameAlongside(in.CustomResourceDefinitions.Items[0], "ns/cool.v1")
	return deleted(in)
}

// does lists all writes except those of the status.
func does(t *testing.T, in csv.Input) []string {
	t.Helper()
	return csvtest.Writes(reconciled(t, in).Actions)
}

// applied returns an Input after the actions of a result have run. Controllers of Kubernetes do nothing, and deleted
// objects no longer exist. gone is true if the CSV itself was deleted.
func applied(t require.TestingT, in csv.Input, actions []olmcore.Action) (after csv.Input, gone bool) {
	for _, action := range actions {
		switch a := action.(type) {
		case olmcore.Create:
			stored := a.Object.DeepCopyObject().(olmcore.Object)
			stored.SetUID("new-" + typesUID(a.Target))
			stored.SetResourceVersion("1")
			stored.SetGeneration(1)
			stored.SetCreationTimestamp(olmcore.Timestamp(in.Now))
			put(t, &in, stored)
		case olmcore.Update:
			put(t, &in, a.After)
		case olmcore.UpdateStatus:
			put(t, &in, a.After)
		case olmcore.Delete:
			take(&in, a.Target)
		}
	}
	c := in.ClusterServiceVersion
	return in, c.DeletionTimestamp != nil && len(c.Finalizers) == 0
}

func typesUID(target olmcore.Ref) types.UID { return types.UID(target.Kind + "-" + target.Name) }

// put stores an object in the list of its kind.
func put(t require.TestingT, in *csv.Input, o olmcore.Object) {
	if c, ok := o.(*v1alpha1.ClusterServiceVersion); ok {
		in.ClusterServiceVersion = c
		return
	}
	known := false
	for _, of := range []reflect.Value{reflect.ValueOf(in).Elem(), reflect.ValueOf(&in.Serving).Elem()} {
		for i := range of.NumField() {
			items := items(of.Field(i))
			if !items.IsValid() || items.Type().Elem() != reflect.TypeOf(o) {
				continue
			}
			known = true
			fresh := reflect.MakeSlice(items.Type(), 0, 1)
			for j := range items.Len() {
				if have := items.Index(j); olmcore.KeyOf(have.Interface().(olmcore.Object)) != olmcore.KeyOf(o) {
					fresh = reflect.Append(fresh, have)
				}
			}
			items.Set(reflect.Append(fresh, reflect.ValueOf(o)))
		}
	}
	require.True(t, known, "objects of this type are never written: %T", o)
}

// items returns the items of an observed list. The result is invalid if the field is not a list.
func items(field reflect.Value) reflect.Value {
	if field.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return field.FieldByName("Items")
}

// take removes a deleted object from the lists.
func take(in *csv.Input, target olmcore.Ref) {
	if target.Kind == "ClusterServiceVersion" && target.Namespace == in.ClusterServiceVersion.Namespace {
		c := in.ClusterServiceVersion.DeepCopy()
		c.DeletionTimestamp = &metav1.Time{Time: in.Now}
		in.ClusterServiceVersion = c
		return
	}
	in.Deployments = csvtest.Without(in.Deployments, target)
	in.Serving.ValidatingWebhookConfigurations = csvtest.Without(in.Serving.ValidatingWebhookConfigurations, target)
	in.Serving.MutatingWebhookConfigurations = csvtest.Without(in.Serving.MutatingWebhookConfigurations, target)
	csvtest.Delete(&in.Deletion, target)
}

// eachList calls visit with a copy of each list of an Input. The objects in the lists are not copied.
func eachList(in csv.Input, visit func(items reflect.Value)) csv.Input {
	visitIn := func(list reflect.Value) {
		items := list.FieldByName("Items")
		if !items.IsValid() || items.IsNil() {
			return
		}
		fresh := reflect.MakeSlice(items.Type(), items.Len(), items.Len())
		reflect.Copy(fresh, items)
		items.Set(fresh)
		visit(items)
	}
	for _, of := range []reflect.Value{reflect.ValueOf(&in).Elem(), reflect.ValueOf(&in.Deletion).Elem(), reflect.ValueOf(&in.Serving).Elem()} {
		for i := range of.NumField() {
			if of.Field(i).Kind() == reflect.Struct {
				visitIn(of.Field(i))
			}
		}
	}
	operands := map[schema.GroupKind]olmcore.Observed[olmcore.Object]{}
	for kind, list := range in.Deletion.Operands {
		visitIn(reflect.ValueOf(&list).Elem())
		operands[kind] = list
	}
	in.Deletion.Operands = operands
	return in
}

// distinct returns an Input in which each list contains an object only once.
func distinct(in csv.Input) csv.Input {
	return eachList(in, func(items reflect.Value) {
		seen := map[olmcore.Key]bool{}
		n := 0
		for i := range items.Len() {
			if o, ok := items.Index(i).Interface().(olmcore.Object); ok {
				if seen[olmcore.KeyOf(o)] {
					continue
				}
				seen[olmcore.KeyOf(o)] = true
			}
			items.Index(n).Set(items.Index(i))
			n++
		}
		items.SetLen(n)
	})
}

// shuffled returns an Input with its lists in the order that permute chooses.
func shuffled(in csv.Input, permute func(n int) []int) csv.Input {
	return eachList(in, func(items reflect.Value) {
		was := reflect.MakeSlice(items.Type(), items.Len(), items.Len())
		reflect.Copy(was, items)
		for to, from := range permute(items.Len()) {
			items.Index(to).Set(was.Index(from))
		}
	})
}

const kubernetesVersion = "v1.36.2"

var (
	csvKind   = v1alpha1.SchemeGroupVersion.WithKind("ClusterServiceVersion")
	groupKind = operatorsv1.GroupVersion.WithKind("OperatorGroup")
)

// controllers returns minimal controllers that call csv.
func controllers(config csv.Config) []controller.Controller {
	return controllersWith(config, func(*csv.Input) {})
}

// controllersWith returns controllers for which hint sets the fields of an Input that only a caller knows.
func controllersWith(config csv.Config, hint func(*csv.Input)) []controller.Controller {
	judged, inspected := map[types.NamespacedName]*csv.Judged{}, map[types.NamespacedName]*serving.Memory{}
	return []controller.Controller{{
		Name: "group", Kinds: []schema.GroupVersionKind{groupKind},
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
			in, err := operatorgroup.Gather(ctx, r, key)
			if err != nil {
				return olmcore.Result{}, err
			}
			in.Now = now
			out, err := operatorgroup.Reconcile(in)
			return out.Result, err
		},
	}, {
		Name: "csv", Kinds: []schema.GroupVersionKind{csvKind},
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
			in, err := csv.Gather(ctx, r, key, config)
			if err != nil {
				return olmcore.Result{}, err
			}
			in.Now, in.LastRun, in.KubernetesVersion = now, last, kubernetesVersion
			in.Judged, in.Inspected = judged[key], inspected[key]
			hint(&in)
			out, err := csv.Reconcile(in)
			if err == nil && len(out.Certificates) > 0 {
				if in.Issued, _, err = (olm.Issuer{}).Issue(ctx, r, out.Certificates, now); err == nil {
					out, err = csv.Reconcile(in)
				}
			}
			judged[key], inspected[key] = out.Judged, out.Inspected
			return out.Result, err
		},
	}}
}

func newWorld(config csv.Config) (*fake.Cluster, *fake.Driver) {
	c := fake.NewCluster(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	c.AutoCreateNamespaces = true
	if err := c.Node("node").Create(nil); err != nil {
		panic(err)
	}
	return c, &fake.Driver{Cluster: c, Controllers: controllers(config)}
}

// groupFor returns an OperatorGroup that a CSV supports.
func groupFor(c *v1alpha1.ClusterServiceVersion) *operatorsv1.OperatorGroup {
	g := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "group"}}
	for _, m := range c.Spec.InstallModes {
		if m.Type == v1alpha1.InstallModeTypeAllNamespaces && m.Supported {
			return g
		}
	}
	g.Spec.TargetNamespaces = []string{c.Namespace}
	return g
}

// needs returns what a CSV requires and an InstallPlan would have created.
func needs(c *v1alpha1.ClusterServiceVersion) []olmcore.Object {
	objects, err := olmcore.PermissionObjects(c)
	if err != nil {
		panic(err)
	}
	for _, o := range objects {
		o.SetOwnerReferences(nil)
		if _, ok := o.(*corev1.ServiceAccount); ok {
			o.SetNamespace(c.Namespace)
		}
	}
	return objects
}

// definitionsFor returns a CRD for each name that a CSV describes, serving every described version.
func definitionsFor(csvs ...*v1alpha1.ClusterServiceVersion) []*apiextensionsv1.CustomResourceDefinition {
	byName := map[string]*apiextensionsv1.CustomResourceDefinition{}
	var list []*apiextensionsv1.CustomResourceDefinition
	for _, c := range csvs {
		for _, d := range append(append([]v1alpha1.CRDDescription(nil), c.Spec.CustomResourceDefinitions.Owned...), c.Spec.CustomResourceDefinitions.Required...) {
			crd := byName[d.Name]
			if crd == nil {
				plural, group, _ := strings.Cut(d.Name, ".")
				crd = definition(group, d.Kind, plural)
				byName[d.Name] = crd
				list = append(list, crd)
			}
			if !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == d.Version }) {
				serve(crd, d.Version)
			}
			isConversion := func(w v1alpha1.WebhookDescription) bool { return slices.Contains(w.ConversionCRDs, d.Name) }
			if crd.Annotations == nil && slices.ContainsFunc(c.Spec.WebhookDefinitions, isConversion) {
				crd.Annotations = map[string]string{"olmcore/converted-by": c.Namespace + "/" + c.Name} // no InstallPlan records it
			}
		}
	}
	return list
}

func definition(group, kind, plural string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group}}
	crd.Spec.Group, crd.Spec.Scope = group, apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"}
	for _, v := range versions {
		serve(crd, v)
	}
	return crd
}

func serve(crd *apiextensionsv1.CustomResourceDefinition, version string) {
	crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
		Name: version, Served: true, Storage: len(crd.Spec.Versions) == 0,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
	})
}

// install creates one CSV and everything that it requires, and runs until nothing changes.
func install(t testing.TB, c *v1alpha1.ClusterServiceVersion) (*fake.Cluster, *fake.Driver) {
	t.Helper()
	c = c.DeepCopy()
	if c.Namespace == "" {
		c.Namespace = "operators"
	}
	cluster, driver := newWorld(csv.Config{})
	installIn(t, cluster, driver, c)
	return cluster, driver
}

func installIn(t testing.TB, cluster *fake.Cluster, driver *fake.Driver, c *v1alpha1.ClusterServiceVersion) {
	t.Helper()
	for _, crd := range definitionsFor(c) {
		require.NoError(t, cluster.Create(crd))
	}
	require.NoError(t, cluster.Create(needs(c)...))
	require.NoError(t, cluster.Create(groupFor(c), c))
	require.NoError(t, driver.Settle(context.Background()))
}

// publishedCSVs contains the CSVs that realCSVs read the first time.
var publishedCSVs map[string]*v1alpha1.ClusterServiceVersion

// realCSVs returns copies of the published CSVs. Their files are read once.
func realCSVs(t testing.TB) map[string]*v1alpha1.ClusterServiceVersion {
	t.Helper()
	if publishedCSVs == nil {
		publishedCSVs = readCSVs(t)
	}
	copies := map[string]*v1alpha1.ClusterServiceVersion{}
	for name, c := range publishedCSVs {
		copies[name] = c.DeepCopy()
	}
	return copies
}

func readCSVs(t testing.TB) map[string]*v1alpha1.ClusterServiceVersion {
	t.Helper()
	found := map[string]*v1alpha1.ClusterServiceVersion{}
	add := func(objects []olmcore.Object) {
		for _, o := range objects {
			if c, ok := o.(*v1alpha1.ClusterServiceVersion); ok {
				found[c.Name] = c
			}
		}
	}
	for _, b := range realdata.ClusterServiceVersions(t) {
		add(b.Objects)
	}
	add(realdata.Objects(t, realdata.Dir(t)+"/manifests/olm-quickstart.yaml"))
	return found
}

func refOf(o olmcore.Object) olmcore.Ref {
	return olmcore.RefOf(o).Unversioned()
}

// clusterObjectsOf returns the objects outside the namespace of a CSV that still have its owner labels.
func clusterObjectsOf(cluster *fake.Cluster, c *v1alpha1.ClusterServiceVersion) []olmcore.Key {
	var left []olmcore.Key
	for _, o := range cluster.Objects() {
		if owner, ok := olmcore.OwnerOf(o.GetLabels()); ok && owner.Name == c.Name && owner.Namespace == c.Namespace && o.GetNamespace() != c.Namespace {
			left = append(left, olmcore.KeyOf(o))
		}
	}
	return left
}

// gather returns the Input of CSV ns/cool.v1.
func gather(t require.TestingT, r olmcore.Reader) csv.Input {
	in, err := csv.Gather(context.Background(), r, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
	require.NoError(t, err)
	in.Now, in.KubernetesVersion = now, kubernetesVersion
	return in
}

// gathered returns the same Input in a cluster with only these objects.
func gathered(t require.TestingT, objects ...olmcore.Object) csv.Input {
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	return gather(t, snapshot)
}
