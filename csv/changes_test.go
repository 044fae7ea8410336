// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// OLM's cases: a CRD recorded for another namespace, the CSV itself, a copy, an unrelated CSV or a newer version: met;
// a CRD recorded for older versions, also in a cycle: not met yet; a CRD that was installed with an older version
// blocks, one of another namespace does not; a CRD that was installed with a successor is met.
func TestCRDInstalledWithOlderVersionBlocksUpgrade(t *testing.T) {
	const key = "operatorframework.io/installed-alongside-"
	neighbour := func(in *csv.Input, name, replaces string) *v1alpha1.ClusterServiceVersion {
		n := operator(name, 1)
		n.Spec.Replaces = replaces
		hold(n, replacing, "BeingReplaced", "", time.Hour)
		in.Neighbours.Items = append(in.Neighbours.Items, n)
		return n
	}
	for name, c := range map[string]struct {
		noted  []string
		change func(in *csv.Input)
		want   string // the CSVs that the CRD came with, "" for none
	}{
		"with no CSV":                    {nil, func(*csv.Input) {}, ""},
		"with itself":                    {[]string{"ns/cool.v1"}, func(*csv.Input) {}, ""},
		"with itself and others":         {[]string{"ns/cool.v0", "ns/cool.v1"}, func(in *csv.Input) { neighbour(in, "cool.v0", "") }, ""},
		"in another namespace":           {[]string{"other/cool.v0"}, func(in *csv.Input) { neighbour(in, "cool.v0", "") }, ""},
		"with a CSV that does not exist": {[]string{"ns/cool.v0"}, func(*csv.Input) {}, ""},
		"with a copy": {
			[]string{"ns/cool.v0"}, func(in *csv.Input) { neighbour(in, "cool.v0", "").Status.Reason = "Copied" }, ""},
		"with an unrelated CSV": {[]string{"ns/hot.v1"}, func(in *csv.Input) { neighbour(in, "hot.v1", "") }, ""},
		"with the version after it": {[]string{"ns/cool.v2"}, func(in *csv.Input) {
			in.ClusterServiceVersion.Spec.Replaces = ""
			neighbour(in, "cool.v2", "cool.v1").Status.Phase = pending
		}, ""},
		"with the version before":  {[]string{"ns/cool.v0"}, func(in *csv.Input) { neighbour(in, "cool.v0", "") }, "cool.v0"},
		"with those before":        {[]string{"ns/cool.v0", "ns/cool.a"}, func(in *csv.Input) { neighbour(in, "cool.v0", "cool.a"); neighbour(in, "cool.a", "") }, "cool.a, cool.v0"},
		"behind a missing version": {[]string{"ns/cool.a"}, func(in *csv.Input) { neighbour(in, "cool.v0", "cool.a"); neighbour(in, "cool.a", "") }, ""},
		"in a cycle": {[]string{"ns/cool.v0", "ns/cool.a"}, func(in *csv.Input) {
			neighbour(in, "cool.v0", "cool.a")
			neighbour(in, "cool.a", "cool.v0")
		}, "cool.a, cool.v0"},
		"an entry without namespace": {[]string{"cool.v0"}, func(in *csv.Input) { neighbour(in, "cool.v0", "") }, ""},
		"an entry with two slashes":  {[]string{"ns/cool.v0/x"}, func(in *csv.Input) { neighbour(in, "cool.v0", "") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(pending, "RequirementsUnknown", unchecked)
			in.ClusterServiceVersion.Spec.Replaces = "cool.v0"
			crd := in.CustomResourceDefinitions.Items[0]
			crd.Annotations = map[string]string{"other": "ns/cool.v0"}
			for i, value := range c.noted {
				crd.Annotations[fmt.Sprint(key, i)] = value
			}
			c.change(&in)
			want := metReport()
			if c.want != "" {
				want[0].Status, want[0].Message, want[0].UUID = "PresentNotSatisfied", "CRD installed alongside other CSV(s): "+c.want, ""
			}
			require.Equal(t, want, assess(t, in).Requirements)
			// A required CRD may have been installed with any CSV.
			d := &in.ClusterServiceVersion.Spec.CustomResourceDefinitions
			d.Owned, d.Required = nil, d.Owned
			require.Equal(t, metReport(), assess(t, labelled(t, in)).Requirements)
		})
	}
}

// OLM's cases: no minimum version: no entry; minimum 0.0.0: Present.
func TestMissingMinKubeVersionIsNotReported(t *testing.T) {
	in := input(pending, "RequirementsUnknown", unchecked)
	in.KubernetesVersion = ""
	require.Equal(t, metReport(), assess(t, in).Requirements)
	in.ClusterServiceVersion.Spec.MinKubeVersion, in.KubernetesVersion = "0.0.0", kubernetesVersion
	require.Equal(t, append([]requirement{{
		Group: "operators.coreos.com", Version: "v1alpha1", Kind: "ClusterServiceVersion", Name: "cool.v1",
		Status: "Present", Message: "CSV minKubeVersion (0.0.0) less than server version (v1.36.2)",
	}}, metReport()...), assess(t, in).Requirements)
}

// TestOwnedAndRequiredCRDsAreReportedOnce checks that each CRD is reported once, sorted by name, for all described
// versions.
// OLM's cases: owned and required CRDs present: met; a CRD version that does not exist or is not served: NotPresent.
func TestOwnedAndRequiredCRDsAreReportedOnce(t *testing.T) {
	in := input(pending, "RequirementsUnknown", unchecked)
	d := &in.ClusterServiceVersion.Spec.CustomResourceDefinitions
	d.Owned = append(d.Owned, v1alpha1.CRDDescription{Name: "cools.example.com", Version: "v2", Kind: "Cool"})
	d.Required = []v1alpha1.CRDDescription{{Name: "airs.example.com", Version: "v1", Kind: "Air"}, {Name: "cools.example.com", Version: "v9", Kind: "Cool"}}
	air, cools := definition("example.com", "Air", "airs", "v1"), definition("example.com", "Cool", "cools", "v1", "v2")
	air.UID, cools.UID = "air", "crd"
	air.Status, cools.Status = establishedCRD().Status, establishedCRD().Status
	in.CustomResourceDefinitions = olmcore.Found(cools, air)
	met := metReport()
	first := met[0]
	first.Name, first.UUID = "airs.example.com", "air"
	want := []requirement{first, met[0], met[1]}
	require.Equal(t, want, assess(t, labelled(t, in)).Requirements)
	cools.Spec.Versions[1].Served = false
	want[1].Status, want[1].Message, want[1].UUID = "NotPresent", "CRD version not served: v2", ""
	require.Equal(t, want, assess(t, labelled(t, in)).Requirements)
	cools.Spec.Versions = cools.Spec.Versions[:1]
	require.Equal(t, want, assess(t, labelled(t, in)).Requirements)
}

// summary lists the versions of a namespace, then its Deployments.
func summary(c *fake.Cluster) (list []string) {
	for _, o := range c.Objects() {
		switch o := o.(type) {
		case *v1alpha1.ClusterServiceVersion:
			list = append(list, fmt.Sprintf("%s %s", o.Name, o.Status.Phase))
		case *appsv1.Deployment:
			list = append(list, fmt.Sprintf("deployment %s of %s, %s", o.Name, o.Labels["olm.owner"], o.Spec.Template.Spec.Containers[0].Image))
		}
	}
	slices.Sort(list)
	return list
}

func editCSV(t *testing.T, c *fake.Cluster, change func(v *v1alpha1.ClusterServiceVersion)) {
	t.Helper()
	key := olmcore.Key{Group: "operators.coreos.com", Kind: "ClusterServiceVersion", Namespace: "ns", Name: "cool.v1"}
	require.NoError(t, c.Edit(key, func(o olmcore.Object) { change(o.(*v1alpha1.ClusterServiceVersion)) }))
}

// second creates the next version, changed, with the permissions that it needs.
func second(change func(v *v1alpha1.ClusterServiceVersion)) func(t *testing.T, c *fake.Cluster) {
	return func(t *testing.T, c *fake.Cluster) {
		objects := fromFiles("rbac-v2.yaml", "v2.yaml")
		change(objects[2].(*v1alpha1.ClusterServiceVersion))
		require.NoError(t, c.Create(objects...))
	}
}

func container(v *v1alpha1.ClusterServiceVersion) *corev1.Container {
	return &v.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0]
}

// TestChangesOfInstalledOperator checks the final state of cool.v1 after each kind of change.
// OLM's cases: Succeeded, a second group: Failed; Succeeded, a new annotation of the CSV: installed again; a
// ServiceAccount of a ConfigMap is accepted; an upgrade that keeps the Deployment's name; an upgrade that changes the
// Deployment's name; a change of the spec in place; a renamed Deployment: the old one is deleted; a hotfix of the spec;
// an invalid CRD version blocks the upgrade.
func TestChangesOfInstalledOperator(t *testing.T) {
	rename := func(v *v1alpha1.ClusterServiceVersion) {
		v.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = "cooler"
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, c *fake.Cluster)
		want   []string
	}{
		"nothing": {func(*testing.T, *fake.Cluster) {}, []string{"cool.v1 Succeeded", "deployment cool of cool.v1, example.com/cool:1"}},
		"its spec changes in place": {func(t *testing.T, c *fake.Cluster) {
			editCSV(t, c, func(v *v1alpha1.ClusterServiceVersion) { container(v).Image = "example.com/cool:hot-fix" })
		}, []string{"cool.v1 Succeeded", "deployment cool of cool.v1, example.com/cool:hot-fix"}},
		"its Deployment is renamed in place": {func(t *testing.T, c *fake.Cluster) { editCSV(t, c, rename) }, []string{"cool.v1 Succeeded", "deployment cooler of cool.v1, example.com/cool:1"}},
		"a new version with the same Deployment": {
			second(func(v *v1alpha1.ClusterServiceVersion) { container(v).Image = "example.com/cool:2" }),
			[]string{"cool.v2 Succeeded", "deployment cool of cool.v2, example.com/cool:2"},
		},
		"a new version with another Deployment": {
			second(func(v *v1alpha1.ClusterServiceVersion) { rename(v); container(v).Image = "example.com/cool:2" }),
			[]string{"cool.v2 Succeeded", "deployment cooler of cool.v2, example.com/cool:2"},
		},
		"a new version whose CRD version is not served": {
			second(func(v *v1alpha1.ClusterServiceVersion) { v.Spec.CustomResourceDefinitions.Owned[0].Version = "v9" }),
			[]string{"cool.v1 Replacing", "cool.v2 Pending", "deployment cool of cool.v1, example.com/cool:1"},
		},
		"an annotation of the CSV changes": {func(t *testing.T, c *fake.Cluster) {
			editCSV(t, c, func(v *v1alpha1.ClusterServiceVersion) { v.Annotations["new"] = "x" })
		}, []string{"cool.v1 Succeeded", "deployment cool of cool.v1, example.com/cool:1"}},
		"a user removes the hash label": {func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, c.Edit(deploymentKey, func(o olmcore.Object) {
				o.SetLabels(map[string]string{"olm.owner": "cool.v1", "olm.owner.namespace": "ns", "olm.owner.kind": "ClusterServiceVersion"})
			}))
		}, []string{"cool.v1 Succeeded", "deployment cool of cool.v1, example.com/cool:1"}},
		"its account is owned by a ConfigMap": {func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, c.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "owner"}}))
			owner := fake.Find[*corev1.ConfigMap](c, "ns", "owner")
			require.NoError(t, c.Edit(olmcore.Key{Kind: "ServiceAccount", Namespace: "ns", Name: "cool"}, func(o olmcore.Object) {
				o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}})
			}))
		}, []string{"cool.v1 Succeeded", "deployment cool of cool.v1, example.com/cool:1"}},
		"a second group is created": {func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, c.Create(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "second"}}))
		}, []string{"cool.v1 Failed", "deployment cool of cool.v1, example.com/cool:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, driver := install(t, small(t))
			c.change(t, cluster)
			require.NoError(t, driver.RunUntilIdle(context.Background(), 20*time.Minute))
			require.Equal(t, c.want, summary(cluster))
			if name == "an annotation of the CSV changes" {
				require.Equal(t, "x", fake.Find[*appsv1.Deployment](cluster, "ns", "cool").Spec.Template.Annotations["new"])
			}
		})
	}
}

// TestUpgradeMayDropOldCRDVersion changes the objects in the order of an InstallPlan. First the CRD changes, which
// makes the old version fail, and then the new version is created.
// OLM's case: another CRD version.
func TestUpgradeMayDropOldCRDVersion(t *testing.T) {
	ctx := context.Background()
	cluster, driver := install(t, small(t))
	key := olmcore.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "cools.example.com"}
	require.NoError(t, cluster.Edit(key, func(o olmcore.Object) {
		versions := &o.(*apiextensionsv1.CustomResourceDefinition).Spec.Versions
		next := (*versions)[0].DeepCopy()
		next.Name = "v2"
		(*versions)[0].Served, (*versions)[0].Storage = false, false
		*versions = append(*versions, *next)
	}))
	require.NoError(t, driver.Settle(ctx))
	require.Equal(t, []string{"cool.v1 Pending", "deployment cool of cool.v1, example.com/cool:1"}, summary(cluster))
	second(func(v *v1alpha1.ClusterServiceVersion) {
		v.Spec.CustomResourceDefinitions.Owned[0].Version = "v2"
		container(v).Image = "example.com/cool:2"
	})(t, cluster)
	require.NoError(t, driver.RunUntilIdle(ctx, 20*time.Minute))
	require.Equal(t, []string{"cool.v2 Succeeded", "deployment cool of cool.v2, example.com/cool:2"}, summary(cluster))
}

var deploymentKey = olmcore.Key{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "cool"}

// TestUnmetRequirementPreventsInstallation checks that an unmet requirement is reported once, and that the CSV is
// installed once the requirement is met.
// OLM's cases: any unmet requirement: Pending, nothing is installed; first RequirementsNotMet, then AllRequirementsMet,
// once each.
func TestUnmetRequirementPreventsInstallation(t *testing.T) {
	for name, c := range map[string]struct {
		lack func(v *v1alpha1.ClusterServiceVersion)
		meet func(t *testing.T, c *fake.Cluster)
	}{
		"a Kubernetes version": {func(v *v1alpha1.ClusterServiceVersion) { v.Spec.MinKubeVersion = "99.0.0" }, func(t *testing.T, c *fake.Cluster) {
			editCSV(t, c, func(v *v1alpha1.ClusterServiceVersion) { v.Spec.MinKubeVersion = "" })
		}},
		"a CRD": {func(v *v1alpha1.ClusterServiceVersion) {
			v.Spec.CustomResourceDefinitions.Required = []v1alpha1.CRDDescription{{Name: "airs.example.com", Version: "v1", Kind: "Air"}}
		}, func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, c.Create(definition("example.com", "Air", "airs", "v1")))
		}},
		"a permission": {func(v *v1alpha1.ClusterServiceVersion) {
			v.Spec.InstallStrategy.StrategySpec.ClusterPermissions[0].Rules[0].Verbs = []string{"get", "list", "watch"}
		}, func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, c.Edit(olmcore.Key{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cool.v1-reader"}, func(o olmcore.Object) {
				o.(*rbacv1.ClusterRole).Rules[0].Verbs = []string{"get", "list", "watch"}
			}))
		}},
		"an account": {func(v *v1alpha1.ClusterServiceVersion) {
			s := &v.Spec.InstallStrategy.StrategySpec
			s.Permissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "second"}}
		}, func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, c.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "second"}}))
		}},
		"an APIService": {func(v *v1alpha1.ClusterServiceVersion) {
			v.Spec.APIServiceDefinitions.Required = []v1alpha1.APIServiceDescription{{Name: "things", Group: "api.example.com", Version: "v1", Kind: "Thing"}}
		}, func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, c.Create(&apiregistrationv1.APIService{
				ObjectMeta: metav1.ObjectMeta{Name: "v1.api.example.com"},
				Spec:       apiregistrationv1.APIServiceSpec{Group: "api.example.com", Version: "v1", GroupPriorityMinimum: 2000, VersionPriority: 15},
			}))
		}},
		"a native API": {func(v *v1alpha1.ClusterServiceVersion) {
			v.Spec.NativeAPIs = []metav1.GroupVersionKind{{Group: "policy", Version: "v9", Kind: "Eviction"}}
		}, func(t *testing.T, c *fake.Cluster) {
			editCSV(t, c, func(v *v1alpha1.ClusterServiceVersion) {
				v.Spec.NativeAPIs[0] = metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, driver := newWorld(csv.Config{})
			objects := fromFiles("base.yaml", "v1.yaml")
			c.lack(objects[len(objects)-1].(*v1alpha1.ClusterServiceVersion))
			require.NoError(t, cluster.Create(objects...))
			require.NoError(t, driver.RunFor(context.Background(), 10*time.Minute))
			require.Equal(t, []string{"cool.v1 Pending"}, summary(cluster))
			c.meet(t, cluster)
			require.NoError(t, driver.RunUntilIdle(context.Background(), 10*time.Minute))
			require.Equal(t, []string{"cool.v1 Succeeded", "deployment cool of cool.v1, example.com/cool:1"}, summary(cluster))
			var said []string
			for _, entry := range csvs(cluster)[0].Status.Conditions {
				said = append(said, fmt.Sprintf("%s/%s", entry.Phase, entry.Reason))
			}
			require.Equal(t, []string{
				"Pending/RequirementsUnknown", "Pending/RequirementsNotMet", "InstallReady/AllRequirementsMet", "Installing/InstallSucceeded", "Succeeded/InstallSucceeded",
			}, said)
		})
	}
}

// TestInstallationWaitsForPermissionsOfGroupAccount checks that a CSV stays Failed until an administrator grants the
// missing permission, or until the group no longer names a ServiceAccount.
// OLM's case: a group's ServiceAccount without permission: nothing is installed until RBAC changes.
func TestInstallationWaitsForPermissionsOfGroupAccount(t *testing.T) {
	cluster, driver := newWorld(csv.Config{})
	objects := fromFiles("base.yaml", "v1.yaml")
	objects[0].(*operatorsv1.OperatorGroup).Spec.ServiceAccountName = "limited"
	require.NoError(t, cluster.Create(append(objects, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "limited"}})...))
	allowed := false
	cluster.Authorize = func(as *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
		if target.Kind == "Deployment" && !allowed && as != nil && as.Name == "limited" {
			return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, target.Name, nil)
		}
		return nil
	}
	require.NoError(t, driver.RunFor(context.Background(), time.Hour))
	v := csvs(cluster)[0]
	require.Equal(t, reason("InstallComponentFailedNoRetry"), v.Status.Reason, v.Status.Message)
	require.Equal(t, []string{"cool.v1 Failed"}, summary(cluster))

	in, err := csv.Gather(context.Background(), cluster, types.NamespacedName{Namespace: "ns", Name: v.Name}, csv.Config{})
	require.NoError(t, err)
	in.Now, in.KubernetesVersion = cluster.Now(), kubernetesVersion
	out := reconciled(t, in)
	require.Equal(t, []string{"create Deployment cool"}, csvtest.Writes(out.Actions), "without memory one attempt is made")
	require.Empty(t, out.Transitions)
	allowed, in.Judged = true, out.Judged
	in.Grants = olmcore.Found[olmcore.Ref]()
	out = reconciled(t, in)
	require.NoError(t, olmcore.Run(context.Background(), cluster, out.Actions))
	require.NoError(t, driver.RunUntilIdle(context.Background(), time.Hour))
	require.Equal(t, []string{"cool.v1 Succeeded", "deployment cool of cool.v1, example.com/cool:1"}, summary(cluster))
}

// TestReplacedVersionsAreDeletedInOrder checks three versions in the states of OLM's tests. The middle version b is
// deleted after the oldest version a is gone.
// OLM's cases: a and b Replacing, c Succeeded: OLM is stuck, this library deletes both; a Deleting, b Replacing, c
// Succeeded: a is deleted, then b.
func TestReplacedVersionsAreDeletedInOrder(t *testing.T) {
	for name, phases := range map[string][3]phaseName{
		"a goes, b is being replaced":       {deleting, replacing, succeeded},
		"a and b are being replaced":        {replacing, replacing, succeeded},
		"a failed, b is being replaced":     {failed, replacing, succeeded},
		"a is Pending, b is being replaced": {pending, replacing, succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, driver := newWorld(csv.Config{})
			objects := fromFiles("base.yaml", "v1.yaml")
			require.NoError(t, cluster.Create(objects[:3]...))
			template := objects[len(objects)-1].(*v1alpha1.ClusterServiceVersion)
			template.Spec.InstallStrategy.StrategySpec.ClusterPermissions = nil
			template.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = nil
			for i, phase := range phases {
				v := template.DeepCopy()
				v.Name, v.Spec.Version.Major = string(rune('a'+i)), uint64(i+1)
				v.Finalizers = []string{cleanup.Finalizer}
				if i > 0 {
					v.Spec.Replaces = string(rune('a' + i - 1))
				}
				require.NoError(t, cluster.Create(v))
				live := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", v.Name).DeepCopy()
				hold(live, phase, "NoOperatorGroup", "", 0)
				live.Status.LastTransitionTime = new(metav1.NewTime(cluster.Now()))
				require.NoError(t, cluster.UpdateStatus(live))
			}
			require.NoError(t, driver.RunUntilIdle(context.Background(), time.Hour))
			require.Equal(t, []string{"c Succeeded"}, summary(cluster), controller.Format(driver.Events))
			var gone []string
			for _, e := range driver.Events {
				if d, ok := e.Action.(olmcore.Delete); ok && d.Target.Kind == "ClusterServiceVersion" {
					gone = append(gone, d.Target.Name)
				}
			}
			require.Equal(t, "a b", strings.Join(gone, " "), "the oldest first")
		})
	}
}
