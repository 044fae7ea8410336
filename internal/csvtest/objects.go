// SPDX-License-Identifier: Apache-2.0

// Package csvtest has what the tests of package csv and of those below it share: an operator of namespace ns, what it
// owns, and words for what is written.
package csvtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// Phases of a CSV.
const (
	None         = v1alpha1.CSVPhaseNone
	Pending      = v1alpha1.CSVPhasePending
	InstallReady = v1alpha1.CSVPhaseInstallReady
	Installing   = v1alpha1.CSVPhaseInstalling
	Succeeded    = v1alpha1.CSVPhaseSucceeded
	Failed       = v1alpha1.CSVPhaseFailed
	Replacing    = v1alpha1.CSVPhaseReplacing
	Deleting     = v1alpha1.CSVPhaseDeleting
)

// Phases are all of them.
var Phases = []v1alpha1.ClusterServiceVersionPhase{None, Pending, InstallReady, Installing, Succeeded, Failed, Replacing, Deleting}

// Now is the time of the Inputs.
var Now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Ago is a time before Now.
func Ago(d time.Duration) *metav1.Time { return new(metav1.NewTime(Now.Add(-d))) }

// Operator returns a CSV of namespace ns with everything in place that the gates ask for: it owns the kind Cool and has
// a Deployment cool. A higher version is younger.
func Operator(name string, version int) *v1alpha1.ClusterServiceVersion {
	c := &v1alpha1.ClusterServiceVersion{}
	c.Namespace, c.Name, c.UID, c.ResourceVersion, c.Generation = "ns", name, types.UID("uid-"+name), "10", 1
	c.CreationTimestamp = *Ago(time.Duration(100-version) * time.Hour)
	c.Finalizers = []string{cleanup.Finalizer}
	c.Annotations = map[string]string{"olm.operatorGroup": "group", "olm.operatorNamespace": "ns", "olm.targetNamespaces": "ns"}
	c.Labels = map[string]string{"olm.api.c38844a2fa17abf0": "provided"}
	c.Spec.Version.Major = uint64(version)
	c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "cools.example.com", Version: "v1", Kind: "Cool"}}
	c.Spec.InstallModes = []v1alpha1.InstallMode{
		{Type: v1alpha1.InstallModeTypeOwnNamespace, Supported: true}, {Type: v1alpha1.InstallModeTypeSingleNamespace, Supported: true},
	}
	c.Spec.InstallStrategy = v1alpha1.NamedInstallStrategy{StrategyName: "deployment", StrategySpec: v1alpha1.StrategyDetailsDeployment{
		DeploymentSpecs: []v1alpha1.StrategyDeploymentSpec{DeploymentSpec("cool")},
		Permissions: []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "cool", Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"pods"}},
		}}},
	}}
	return c
}

// Webhook is the description of a webhook that the Deployment cool serves.
func Webhook(name string, kind v1alpha1.WebhookAdmissionType) v1alpha1.WebhookDescription {
	w := v1alpha1.WebhookDescription{
		GenerateName: name, Type: kind, DeploymentName: "cool", ContainerPort: 443, WebhookPath: new("/cools"), AdmissionReviewVersions: []string{"v1"},
		SideEffects: new(admissionregistrationv1.SideEffectClassNone),
	}
	if kind == v1alpha1.ConversionWebhook {
		w.ConversionCRDs = []string{"cools.example.com"}
		return w
	}
	w.Rules = []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"}, Resources: []string{"cools"}},
	}}
	return w
}

// DeploymentSpec is a Deployment of an install strategy.
func DeploymentSpec(name string) v1alpha1.StrategyDeploymentSpec {
	labels := map[string]string{"app": name}
	return v1alpha1.StrategyDeploymentSpec{Name: name, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{ServiceAccountName: "cool", Containers: []corev1.Container{{Name: "manager", Image: "example.com/cool:1"}}},
		},
	}}
}

// Hold gives a CSV a status that is as old as age says.
func Hold(c *v1alpha1.ClusterServiceVersion, phase v1alpha1.ClusterServiceVersionPhase, why v1alpha1.ConditionReason, message string, age time.Duration) {
	c.Status = v1alpha1.ClusterServiceVersionStatus{}
	if phase == None {
		return
	}
	c.Status.Phase, c.Status.Reason, c.Status.Message = phase, why, message
	c.Status.LastTransitionTime, c.Status.LastUpdateTime = Ago(age), Ago(age)
	c.Status.Conditions = []v1alpha1.ClusterServiceVersionCondition{{
		Phase: phase, Reason: why, Message: message, LastTransitionTime: Ago(age), LastUpdateTime: Ago(age),
	}}
}

// Copied is what a copy of Operator("cool.v1", 1) looks like.
func Copied(namespace string) *v1alpha1.ClusterServiceVersion {
	c := Operator("cool.v1", 1)
	c.Namespace, c.UID, c.Finalizers, c.Labels = namespace, types.UID("copy-"+namespace), nil, map[string]string{"olm.copiedFrom": "ns"}
	Hold(c, Succeeded, "Copied", "The operator is running in ns but is managing this namespace", time.Hour)
	return c
}

// Group is an OperatorGroup for its own namespace, with a status that is an hour old.
func Group() *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "group", UID: "group", ResourceVersion: "5", Annotations: map[string]string{"olm.providedAPIs": "Cool.v1.example.com"}},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"ns"}},
		Status:     operatorsv1.OperatorGroupStatus{Namespaces: []string{"ns"}, LastUpdated: Ago(time.Hour)},
	}
}

// Namespace is a namespace with these labels.
func Namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Labels: labels}}
}

// Ours is the metadata of an object outside the namespaces that belongs to CSV cool.v1.
func Ours(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-" + name), ResourceVersion: "3", CreationTimestamp: *Ago(time.Hour),
		Labels: map[string]string{"olm.owner": "cool.v1", "olm.owner.namespace": "ns", "olm.owner.kind": "ClusterServiceVersion"},
	}
}

// OwnedBy refers to a CSV as the owner.
func OwnedBy(name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{olmcore.OwnerReferenceTo(Operator(name, 1))}
}

// Cool is a custom resource of the operator.
func Cool(name string, finalizers ...string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Cool"}}
	o.SetNamespace("ns")
	o.SetName(name)
	o.SetUID(types.UID("uid-" + name))
	o.SetFinalizers(finalizers)
	return o
}

// Conversion is that of a CRD which the operator's Service converts.
func Conversion() *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{
			Service: &apiextensionsv1.ServiceReference{Namespace: "ns", Name: "cool-service"},
		}},
	}
}

// Delegator is what serving certificates of the operator need in the cluster, without owner labels.
func Delegator() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "cool-service-system:auth-delegator", UID: "d", ResourceVersion: "3", CreationTimestamp: *Ago(time.Hour), Labels: map[string]string{"olm.managed": "true"}},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "cool"}},
	}
}

// Deletion is what a cleanup reads in a cluster that has nothing for it.
func Deletion() cleanup.Deletion {
	return cleanup.Deletion{
		Peers: olmcore.Found[*v1alpha1.ClusterServiceVersion](), Namespaces: olmcore.Found(Namespace("ns", nil)),
		Sharers:        olmcore.Found[*v1alpha1.ClusterServiceVersion](),
		InstallPlans:   olmcore.Found[*v1alpha1.InstallPlan](),
		SharerGroups:   olmcore.Found[*operatorsv1.OperatorGroup](),
		ClusterObjects: olmcore.Found[olmcore.Object](), WellKnown: olmcore.Found[olmcore.Object](), Copies: olmcore.Found[*v1alpha1.ClusterServiceVersion](),
	}
}

// Delete removes an object from the lists of a Deletion.
func Delete(d *cleanup.Deletion, target olmcore.Ref) {
	d.ClusterObjects, d.WellKnown, d.Copies = Without(d.ClusterObjects, target), Without(d.WellKnown, target), Without(d.Copies, target)
	operands := map[schema.GroupKind]olmcore.Observed[olmcore.Object]{}
	for kind, list := range d.Operands {
		operands[kind] = Without(list, target)
	}
	d.Operands = operands
}

// Without returns a list that lacks an object.
func Without[T olmcore.Object](list olmcore.Observed[T], target olmcore.Ref) olmcore.Observed[T] {
	list.Items = slices.DeleteFunc(slices.Clone(list.Items), func(o T) bool { return olmcore.KeyOf(o) == target.Key() })
	return list
}

// Writes lists the actions other than those about status as "verb Kind name".
func Writes(actions []olmcore.Action) (list []string) {
	for _, a := range actions {
		if verb, target, _ := a.Describe(); verb != olmcore.VerbUpdateStatus {
			list = append(list, fmt.Sprintf("%s %s %s", verb, target.Kind, target.Name))
		}
	}
	return list
}

// Deletions lists what is deleted as "Kind namespace/name".
func Deletions(actions []olmcore.Action) []string {
	list := []string{}
	for _, a := range actions {
		if d, ok := a.(olmcore.Delete); ok {
			list = append(list, d.Target.Key().String())
		}
	}
	return list
}

// PrintRecords prints the actions of an Example.
func PrintRecords(res olmcore.Result) {
	for _, a := range res.Actions {
		record, err := olmcore.RecordOf(a)
		if err != nil {
			panic(err)
		}
		record.Target.UID, record.Target.ResourceVersion = "", ""
		text, err := json.Marshal(record)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(text))
	}
}

// NothingServed is what there is of webhooks and APIs where nothing serves any.
func NothingServed() serving.Objects {
	return serving.Objects{
		Services: olmcore.Found[*corev1.Service](), Secrets: olmcore.Found[*corev1.Secret](), Pods: olmcore.Found[*corev1.Pod](),
		Roles: olmcore.Found[*rbacv1.Role](), RoleBindings: olmcore.Found[*rbacv1.RoleBinding](), ClusterRoleBindings: olmcore.Found[*rbacv1.ClusterRoleBinding](),
		ValidatingWebhookConfigurations: olmcore.Found[*admissionregistrationv1.ValidatingWebhookConfiguration](),
		MutatingWebhookConfigurations:   olmcore.Found[*admissionregistrationv1.MutatingWebhookConfiguration](),
	}
}
