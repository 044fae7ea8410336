// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/internal/upgradetest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
	"github.com/olmcore/olm/preview/rollback"
)

type bundle = upgradetest.Bundle

// previewed returns the preview of the plan that waits in a world.
func previewed(t *testing.T, w *upgradetest.World) preview.Preview {
	t.Helper()
	p, err := preview.Run(context.Background(), w.Cluster, w.Plan(t), w.Cluster.Now(), w.OLM.Options)
	require.NoError(t, err)
	return p
}

// requireCameTrue approves the plan and demands that what comes of it is what was foreseen.
func requireCameTrue(t *testing.T, w *upgradetest.World, p preview.Preview) {
	t.Helper()
	before := w.Cluster.Objects()
	w.Approve(t)
	came := preview.Between(before, w.Cluster.Objects())
	foreseen := func(p preview.Preview) preview.Preview {
		return preview.Preview{
			Versions: p.Versions, Objects: p.Objects, Permissions: p.Permissions, CustomResourceDefinitions: p.CustomResourceDefinitions,
			Images: p.Images, Webhooks: p.Webhooks, Restarts: p.Restarts, Deprecations: p.Deprecations,
		}
	}
	judged := cmpopts.IgnoreFields(preview.Definition{}, "Judged", "Refused")
	if diff := cmp.Diff(foreseen(p), foreseen(came), judged, cmpopts.IgnoreUnexported(preview.Definition{})); diff != "" {
		t.Errorf("foreseen and not come (-), come and not foreseen (+):\n%s", diff)
	}
}

func names(p preview.Preview) (all []string) {
	for _, o := range p.Objects {
		all = append(all, string(o.Change)+" "+o.Object.Kind+" "+o.Object.Name)
	}
	return all
}

// hashless cuts the hashes off the names of roles.
func hashless(lines []string) []string {
	for i, l := range lines {
		if at := strings.LastIndex(l, "-"); at > 0 && len(l)-at > 30 {
			lines[i] = l[:at]
		}
	}
	return lines
}

func TestAnUpgradeInFull(t *testing.T) {
	w := upgradetest.New(t, func(_, second *bundle) {
		spec := &second.CSV.Spec.InstallStrategy.StrategySpec
		spec.Permissions[0].Rules = append(spec.Permissions[0].Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
		spec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: upgradetest.Deployment, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}},
		}}}
		second.CRD.Spec.Versions[0] = upgradetest.Version("v1", false, "size", "rooms")
		second.CRD.Spec.Versions = append(second.CRD.Spec.Versions, upgradetest.Version("v2", true, "size", "rooms"))
	})
	p := previewed(t, w)
	golden(t, "upgrade.json", p)
	requireCameTrue(t, w, p)
	require.Equal(t, v1alpha1.CSVPhaseSucceeded, w.Phase(upgradetest.Second))
}

// golden compares with a file, which -update writes.
func golden(t *testing.T, name string, p preview.Preview) {
	t.Helper()
	p.Plan.UID, p.Plan.ResourceVersion = "", "" // which say how the test world was made
	data, err := json.MarshalIndent(p, "", "  ")
	require.NoError(t, err)
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, append(data, '\n'), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), string(data)+"\n"); diff != "" {
		t.Error(diff)
	}
}

func TestTheFirstVersion(t *testing.T) {
	w := upgradetest.Offering(t, []bundle{upgradetest.BundleOf(1)})
	p := previewed(t, w)
	require.Equal(t, []string{
		"created ClusterRole vaults.bank.example.com-v1-admin", "created ClusterRole vaults.bank.example.com-v1-crdview",
		"created ClusterRole vaults.bank.example.com-v1-edit", "created ClusterRole vaults.bank.example.com-v1-view",
		"created ClusterServiceVersion vault.v1.0.0", "created CustomResourceDefinition vaults.bank.example.com", "created Deployment vault-operator",
		"created OperatorCondition vault.v1.0.0", "created Role vault.v1.0.0", "created Role vault.v1.0.0-vault-operat",
		"created RoleBinding vault.v1.0.0", "created RoleBinding vault.v1.0.0-vault-operat", "created ServiceAccount vault-operator",
		"changed ClusterRole olm.og.group.admin", "changed ClusterRole olm.og.group.edit", "changed ClusterRole olm.og.group.view",
	}, hashless(names(p)))
	require.Equal(t, preview.Undo{Possible: true, Because: []string{
		"CustomResourceDefinition vaults.bank.example.com and its custom resources stay when the operator goes",
		"vault.v1.0.0 replaces nothing: the way back is to uninstall it",
	}}, p.Undo)
	requireCameTrue(t, w, p)
}

func TestWhatIsTold(t *testing.T) {
	condition := func(c *fake.Cluster, status metav1.ConditionStatus, override ...metav1.Condition) {
		oc := fake.Find[*operatorsv2.OperatorCondition](c, upgradetest.Namespace, upgradetest.First).DeepCopy()
		oc.Spec.Conditions = []metav1.Condition{{Type: operatorsv2.Upgradeable, Status: status, Reason: "Migrating", Message: "a migration runs", LastTransitionTime: metav1.NewTime(c.Now())}}
		oc.Spec.Overrides = override
		if err := c.Update(oc); err != nil {
			panic(err)
		}
	}
	for name, tt := range map[string]struct {
		change func(first, second *bundle)
		before func(*fake.Cluster)
		want   func(*testing.T, preview.Preview)
	}{
		"a gate that is shut": {
			before: func(c *fake.Cluster) { condition(c, metav1.ConditionFalse) },
			want: func(t *testing.T, p preview.Preview) {
				require.Equal(t, []preview.Gate{{Operator: upgradetest.First, Upgradeable: "False", Reason: "Migrating", Message: "a migration runs"}}, p.Gates)
				require.Equal(t, []preview.Block{{
					Object: olmcore.Ref{APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: v1alpha1.ClusterServiceVersionKind, Namespace: upgradetest.Namespace, Name: upgradetest.Second},
					Reason: string(v1alpha1.CSVReasonOperatorConditionNotUpgradeable), Message: "operator is not upgradeable: the operator is not upgradeable: a migration runs",
				}}, p.Blocked)
				require.Empty(t, p.Restarts)
			},
		},
		"a gate that an administrator opened": {
			before: func(c *fake.Cluster) {
				condition(c, metav1.ConditionFalse, metav1.Condition{Type: operatorsv2.Upgradeable, Status: metav1.ConditionTrue, Reason: "Tested", LastTransitionTime: metav1.NewTime(c.Now())})
			},
			want: func(t *testing.T, p preview.Preview) {
				require.Equal(t, []preview.Gate{{Operator: upgradetest.First, Upgradeable: "True", Overridden: true, Reason: "Tested"}}, p.Gates)
				require.Empty(t, p.Blocked)
			},
		},
		"a storage version that the old definition does not have": {
			change: func(_, second *bundle) {
				second.CRD.Spec.Versions[0].Storage = false
				second.CRD.Spec.Versions = append(second.CRD.Spec.Versions, upgradetest.Version("v2", true, "size"))
			},
			want: func(t *testing.T, p preview.Preview) {
				require.Len(t, p.CustomResourceDefinitions, 1)
				d := p.CustomResourceDefinitions[0]
				require.Equal(t, []any{"v1", "v2", []string{"v2"}, []string{}}, []any{d.StorageBefore, d.StorageAfter, d.VersionsAdded, d.VersionsRemoved})
				require.Equal(t, preview.Undo{Because: []string{"custom resources of vaults.bank.example.com are stored as v2 from then on, which the version before does not read"}}, p.Undo)
			},
		},
		"a field more costs its values on the way back": {
			change: func(_, second *bundle) {
				second.CRD.Spec.Versions[0] = upgradetest.Version("v1", true, "size", "rooms")
			},
			want: func(t *testing.T, p preview.Preview) {
				require.Empty(t, p.CustomResourceDefinitions[0].Breaking)
				require.Equal(t, preview.Undo{Possible: true, Because: []string{"custom resources of vaults.bank.example.com lose what they have in spec.versions[v1].schema.openAPIV3Schema.properties[spec].properties[rooms] by then"}}, p.Undo)
			},
		},
		"a required API that is missing": {
			change: func(_, second *bundle) {
				second.CSV.Spec.CustomResourceDefinitions.Required = []v1alpha1.CRDDescription{{Name: "keys.safe.example.com", Version: "v1", Kind: "Key"}}
			},
			want: func(t *testing.T, p preview.Preview) {
				require.Len(t, p.Blocked, 1)
				require.Contains(t, p.Blocked[0].Message, "CustomResourceDefinition keys.safe.example.com is NotPresent")
			},
		},
		"a Deployment that goes, and one that stops all its Pods first": {
			change: func(first, second *bundle) {
				spec := &first.CSV.Spec.InstallStrategy.StrategySpec
				other := *spec.DeploymentSpecs[0].DeepCopy()
				other.Name, other.Spec.Selector.MatchLabels["app"], other.Spec.Template.Labels["app"] = "vault-ui", "vault-ui", "vault-ui"
				spec.DeploymentSpecs = append(spec.DeploymentSpecs, *other.DeepCopy())
				second.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
			},
			want: func(t *testing.T, p preview.Preview) {
				require.Contains(t, names(p), "deleted Deployment vault-ui")
				require.Len(t, p.Restarts, 1)
				require.True(t, p.Restarts[0].Recreate)
				require.Contains(t, p.Images, preview.Image{Namespace: upgradetest.Namespace, Deployment: "vault-ui", Container: "manager", Before: "registry.example.com/vault:1.0.0"})
			},
		},
		"a version that is deprecated": {
			change: func(_, second *bundle) { second.Deprecated = "use vault.v3.0.0" },
			want: func(t *testing.T, p preview.Preview) {
				require.Equal(t, []preview.Deprecation{{Subscription: upgradetest.Subscription, Of: string(v1alpha1.SubscriptionBundleDeprecated), Message: "olm.bundle/vault.v2.0.0: use vault.v3.0.0"}}, p.Deprecations)
			},
		},
		"webhooks": {
			change: func(_, second *bundle) {
				second.CSV.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{webhook()}
			},
			want: func(t *testing.T, p preview.Preview) {
				require.Empty(t, p.Blocked)
				require.Equal(t, []preview.Webhook{{
					Kind: "ValidatingWebhookConfiguration", Name: "check.bank.example.com", Change: preview.Created, FailurePolicy: "Fail",
					Rules: []string{"CREATE vaults of bank.example.com"},
				}}, p.Webhooks)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := upgradetest.New(t, tt.change)
			if tt.before != nil {
				tt.before(w.Cluster)
				w.Run(t)
			}
			p := previewed(t, w)
			tt.want(t, p)
			requireCameTrue(t, w, p)
		})
	}
}

func webhook() v1alpha1.WebhookDescription {
	w := v1alpha1.WebhookDescription{
		GenerateName: "check.bank.example.com", Type: v1alpha1.ValidatingAdmissionWebhook, DeploymentName: upgradetest.Deployment, ContainerPort: 443,
		AdmissionReviewVersions: []string{"v1"}, SideEffects: new(sideEffectsNone), FailurePolicy: new(failurePolicyFail), WebhookPath: new("/check"),
	}
	w.Rules = rulesOnVaults
	return w
}

// TestCustomResourcesThatANewSchemaRefuses: they are asked for, and named once they were judged.
func TestCustomResourcesThatANewSchemaRefuses(t *testing.T) {
	ctx := context.Background()
	w := upgradetest.New(t, func(_, second *bundle) {
		second.CRD.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"rooms"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"size": {Type: "integer"}, "rooms": {Type: "integer"},
		}}
	})
	in, err := preview.Gather(ctx, w.Cluster, w.Plan(t), w.Cluster.Now(), w.OLM.Options)
	require.NoError(t, err)
	asking, err := preview.Simulate(ctx, in)
	require.NoError(t, err)
	require.Len(t, asking.SchemaChanges, 1)
	require.Equal(t, []string{"v1"}, asking.SchemaChanges[0].Versions)
	require.False(t, asking.CustomResourceDefinitions[0].Judged)

	in.CustomResources = olmcore.Found(installplan.ResourceVerdict{
		CustomResourceDefinition: upgradetest.Definition, Version: "v1", Namespace: "ops", Name: "gold", New: []string{"spec.rooms: Required value"},
	})
	p, err := preview.Simulate(ctx, in)
	require.NoError(t, err)
	require.Empty(t, p.SchemaChanges)
	require.Equal(t, []preview.Definition{{
		Name: upgradetest.Definition, Change: preview.Changed, VersionsAdded: []string{}, VersionsRemoved: []string{}, StorageBefore: "v1", StorageAfter: "v1",
		Breaking: []string{"spec.versions[v1].schema.openAPIV3Schema.properties[spec].required"}, Judged: true,
		Refused: []preview.Refused{{Version: "v1", Namespace: "ops", Name: "gold", Why: "spec.rooms: Required value"}},
	}}, clean(p.CustomResourceDefinitions))
	require.Len(t, p.Blocked, 1)
	require.Contains(t, p.Blocked[0].Message, "spec.rooms: Required value")
	require.Empty(t, p.Versions, "nothing of the plan is applied")
}

// clean drops what is not exported.
func clean(all []preview.Definition) (copies []preview.Definition) {
	for _, d := range all {
		copies = append(copies, preview.Definition{
			Name: d.Name, Change: d.Change, VersionsAdded: d.VersionsAdded, VersionsRemoved: d.VersionsRemoved, StorageBefore: d.StorageBefore,
			StorageAfter: d.StorageAfter, Breaking: d.Breaking, Judged: d.Judged, Refused: d.Refused,
		})
	}
	return copies
}

// TestNothingOfItIsWritten: the observed objects stay as they are, and the answer is the same again.
func TestNothingOfItIsWritten(t *testing.T) {
	ctx := context.Background()
	w := upgradetest.New(t, func(_, second *bundle) { second.CSV.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{webhook()} })
	options := w.OLM.Options
	options.Issuer, options.Asked = reaching{t}, func(string, types.NamespacedName, any) { t.Error("it tells of what it asks") }
	in, err := preview.Gather(ctx, w.Cluster, w.Plan(t), w.Cluster.Now(), options)
	require.NoError(t, err)
	before := make([]olmcore.Object, len(in.Objects))
	for i, o := range in.Objects {
		before[i] = o.DeepCopyObject().(olmcore.Object)
	}
	p, err := preview.Simulate(ctx, in)
	require.NoError(t, err)
	require.Equal(t, before, in.Objects)
	again, err := preview.Simulate(ctx, in)
	require.NoError(t, err)
	require.Equal(t, p, again)
}

func TestAPlanThatIsDone(t *testing.T) {
	w := upgradetest.New(t, nil)
	key := w.Plan(t)
	w.Approve(t)
	p, err := preview.Run(context.Background(), w.Cluster, key, w.Cluster.Now(), w.OLM.Options)
	require.NoError(t, err)
	require.Empty(t, p.Objects)
	require.Empty(t, p.Blocked)
}

func TestInput(t *testing.T) {
	w := upgradetest.New(t, nil)
	good, err := preview.Gather(context.Background(), w.Cluster, w.Plan(t), w.Cluster.Now(), w.OLM.Options)
	require.NoError(t, err)
	for want, change := range map[string]func(*preview.Input){
		"Now is zero":             func(in *preview.Input) { in.Now = time.Time{} },
		"Plan.Namespace is empty": func(in *preview.Input) { in.Plan.Namespace = "" },
		"Plan.Name is empty":      func(in *preview.Input) { in.Plan.Name = "" },
		"objects[0] is nil":       func(in *preview.Input) { in.Objects = append([]olmcore.Object{nil}, in.Objects...) },
		"Config.RunAsUser is negative": func(in *preview.Input) {
			in.Options.InstallPlan.RunAsUser = -1
		},
	} {
		in := good
		change(&in)
		_, err := preview.Simulate(context.Background(), in)
		require.ErrorIs(t, err, olmcore.ErrInvalidInput, want)
		require.ErrorContains(t, err, want)
	}
	in := good
	in.Plan.Name = "other"
	_, err = preview.Simulate(context.Background(), in)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = preview.Gather(context.Background(), w.Cluster, types.NamespacedName{Namespace: "ops", Name: "other"}, w.Cluster.Now(), w.OLM.Options)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = preview.Simulate(ended, good)
	require.ErrorIs(t, err, context.Canceled)
}

// TestSecretsAreNotTold: that one changes is told, and nothing of what is in it.
func TestSecretsAreNotTold(t *testing.T) {
	secret := func(value string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "key", UID: "1"}, Data: map[string][]byte{"password": []byte(value)}}
	}
	p := preview.Between([]olmcore.Object{secret("one")}, []olmcore.Object{secret("two")})
	require.Equal(t, []preview.Object{{
		Object: olmcore.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "ops", Name: "key"}, Change: preview.Changed, Fields: []preview.Field{{Path: "data.password"}},
	}}, p.Objects)
}

// TestWebhooksOfOneName: names are unique in one configuration alone, so that one must not hide another.
func TestWebhooksOfOneName(t *testing.T) {
	configuration := func(name, resource string) *admissionregistrationv1.ValidatingWebhookConfiguration {
		return &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "check.example.com", Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"CREATE"}, Rule: admissionregistrationv1.Rule{Resources: []string{resource}},
			}}}},
		}
	}
	p := preview.Between(nil, []olmcore.Object{configuration("a", "vaults"), configuration("b", "*")})
	require.Equal(t, []preview.Webhook{
		{Kind: "ValidatingWebhookConfiguration", Name: "check.example.com", Change: preview.Created, Rules: []string{"CREATE *"}, FailurePolicy: "Fail"},
		{Kind: "ValidatingWebhookConfiguration", Name: "check.example.com", Change: preview.Created, Rules: []string{"CREATE vaults"}, FailurePolicy: "Fail"},
	}, p.Webhooks)
}

// TestANamespaceThatIsBeingDeleted: the plan exists, and nothing can come of it.
func TestANamespaceThatIsBeingDeleted(t *testing.T) {
	w := upgradetest.New(t, nil)
	in, err := preview.Gather(context.Background(), w.Cluster, w.Plan(t), w.Cluster.Now(), w.OLM.Options)
	require.NoError(t, err)
	for i, o := range in.Objects {
		if n, is := o.(*corev1.Namespace); is && n.Name == in.Plan.Namespace {
			n = n.DeepCopy()
			n.DeletionTimestamp, n.Spec.Finalizers = new(metav1.NewTime(in.Now)), []corev1.FinalizerName{corev1.FinalizerKubernetes}
			in.Objects[i] = n
		}
	}
	p, err := preview.Simulate(context.Background(), in)
	require.NoError(t, err)
	require.Equal(t, in.Plan.Name, p.Plan.Name)
	require.Equal(t, []preview.Block{{Object: olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: "ops"}, Reason: "Terminating", Message: "the namespace is being deleted"}}, p.Blocked)
	require.NotNil(t, p.Objects)
	a, err := rollback.Advise(context.Background(), rollback.From(in, upgradetest.Subscription, ""))
	require.NoError(t, err)
	require.Equal(t, "namespace ops is being deleted", a.Refused)
}

// TestWhatIsAggregatedIsTold: a ClusterRole that is bound already gets the rules of a new one by its labels.
func TestWhatIsAggregatedIsTold(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "collected"}
	collected := &rbacv1.ClusterRole{ObjectMeta: meta, AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"parts": "yes"}}}}}
	bound := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: upgradetest.Namespace, Name: upgradetest.Deployment}},
	}
	w := upgradetest.New(t, func(_, second *bundle) {
		part := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: map[string]string{"parts": "yes"}}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}}}
		part.APIVersion, part.Kind = rbacv1.SchemeGroupVersion.String(), "ClusterRole"
		second.More = append(second.More, part)
	}, collected, bound)
	p := previewed(t, w)
	require.Equal(t, []permissions.Grant{{
		Subject: "ServiceAccount ops/vault-operator", Scope: "cluster", Rule: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}},
		Escalation: []permissions.Escalation{permissions.ClusterWide},
	}}, p.Permissions.Added)
}

// TestBetweenOfAnything: nil is none, and what was read as maps is understood.
func TestBetweenOfAnything(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}}
	role.Labels = map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}
	m, err := olmcore.ToMap(role)
	require.NoError(t, err)
	typed := preview.Between(nil, []olmcore.Object{role})
	require.Len(t, typed.Permissions.Added, 1)
	require.Equal(t, typed, preview.Between([]olmcore.Object{nil, (*v1alpha1.Subscription)(nil)}, []olmcore.Object{(*corev1.Pod)(nil), &unstructured.Unstructured{Object: m}}))
}

// TestATenantHidesNothing: whatever a role says of its owners, what it gives is told.
func TestATenantHidesNothing(t *testing.T) {
	owner := []metav1.OwnerReference{{APIVersion: "operators.coreos.com/v2", Kind: "OperatorCondition", Name: "vault.v2.0.0", UID: "1"}}
	m := metav1.ObjectMeta{Namespace: "ops", Name: "vault.v2.0.0", OwnerReferences: owner, Labels: map[string]string{"olm.owner": "vault.v2.0.0"}}
	version := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "vault.v2.0.0"}}
	version.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = make([]v1alpha1.StrategyDeploymentSpec, 1)
	version.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = "robot"
	p := preview.Between(nil, []olmcore.Object{
		version,
		&rbacv1.Role{ObjectMeta: m, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"operators.coreos.com"}, Resources: []string{"operatorconditions"}, Verbs: []string{"get"}, ResourceNames: []string{"vault.v2.0.0"}},
			{APIGroups: []string{"operators.coreos.com"}, Resources: []string{"operatorconditions"}, Verbs: []string{"patch"}, ResourceNames: []string{"shop.v1"}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: m, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: m.Name}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: "robot"}}},
	})
	require.Equal(t, []permissions.Grant{{
		Subject: "ServiceAccount ops/robot", Scope: "namespace ops",
		Rule: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}, Escalation: []permissions.Escalation{permissions.Secrets},
	}, {
		Subject: "ServiceAccount ops/robot", Scope: "namespace ops",
		Rule: rbacv1.PolicyRule{
			APIGroups: []string{"operators.coreos.com"}, Resources: []string{"operatorconditions"}, Verbs: []string{"patch"}, ResourceNames: []string{"shop.v1"},
		},
		Escalation: []permissions.Escalation{},
	}}, p.Permissions.Added)
}
