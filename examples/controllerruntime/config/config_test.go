// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/crds"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/controllerruntime/config"
	"github.com/olmcore/olm/examples/internal/command"
)

// generated compares a file with what it is generated from, or writes it with OLMCORE_UPDATE=1.
func generated(t *testing.T, path string, want []byte) {
	if os.Getenv("OLMCORE_UPDATE") == "1" {
		require.NoError(t, os.WriteFile(path, want, 0o644))
		return
	}
	have, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s is not up to date (%v): OLMCORE_UPDATE=1 go test writes it", path, err)
	}
}

// TestTheDefinitionsAreThoseOfTheAPIModule: one line of JSON each, as the descriptions of all fields in YAML would fill
// almost a megabyte.
func TestTheDefinitionsAreThoseOfTheAPIModule(t *testing.T) {
	names := []string{"kustomization.yaml"}
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{
		crds.CatalogSource(), crds.ClusterServiceVersion(), crds.InstallPlan(), crds.OLMConfig(),
		crds.Operator(), crds.OperatorCondition(), crds.OperatorGroup(), crds.Subscription(),
	} {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		require.NoError(t, err)
		delete(fields, "status")
		unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
		text, err := json.Marshal(fields)
		require.NoError(t, err)
		names = append(names, crd.Spec.Names.Plural+".json")
		generated(t, filepath.Join("crds", crd.Spec.Names.Plural+".json"), append(text, '\n'))
	}
	list := "# The kinds of OLM, written by OLMCORE_UPDATE=1 go test from github.com/operator-framework/api.\n" +
		"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- " + strings.Join(names[1:], "\n- ") + "\n"
	generated(t, filepath.Join("crds", names[0]), []byte(list))
	entries, err := os.ReadDir("crds")
	require.NoError(t, err)
	for _, e := range entries {
		require.Contains(t, names, e.Name(), "the API module has it no more")
	}
}

// options are what the arguments of the Deployment mean for the rights of the manager.
var options = controllers.Options{Sweeps: true, Operators: true}

func init() { options.InstallPlan.OPMImage = "opm" }

func TestTheClusterRoleIsWhatTheControllersNeed(t *testing.T) {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "ClusterRole",
		"metadata": map[string]any{"name": "olm"}, "rules": options.Rights().Cluster,
	})
	require.NoError(t, err)
	generated(t, "rbac/role.yaml", append([]byte("# Written by OLMCORE_UPDATE=1 go test from controllers.Options.Rights.\n"), text...))
}

// overlays are the folders that people apply, and the components that they may add.
var overlays = []string{"default"}

// TestEveryObjectIsValid decodes all objects strictly.
func TestEveryObjectIsValid(t *testing.T) {
	known := runtime.NewScheme()
	require.NoError(t, scheme.AddToScheme(known))
	require.NoError(t, apiextensionsv1.AddToScheme(known))
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	for _, folder := range overlays {
		objects := rendered(t, folder)
		require.Greater(t, len(objects), 15)
		for _, o := range objects {
			text, err := o.MarshalJSON()
			require.NoError(t, err)
			if o.GetKind() == "ServiceMonitor" {
				continue
			}
			_, _, err = decoder.Decode(text, nil, nil)
			require.NoError(t, err, "%s: %s %s", folder, o.GetKind(), o.GetName())
		}
	}
}

func rendered(t *testing.T, folder string) []*unstructured.Unstructured {
	objects, err := config.Render(folder)
	require.NoError(t, err)
	return objects
}

// find returns the object of its type and a name.
func find[T any](t *testing.T, objects []*unstructured.Unstructured, name string) (o T) {
	i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool {
		return u.GetKind() == reflect.TypeFor[T]().Name() && u.GetName() == name
	})
	require.GreaterOrEqual(t, i, 0, "%T %s", o, name)
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[i].Object, &o, true))
	return o
}

// TestTheManagerIsAllowedInARestrictedNamespace: as the namespace that it brings is.
func TestTheManagerIsAllowedInARestrictedNamespace(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	require.NoError(t, err)
	for _, folder := range overlays {
		objects := rendered(t, folder)
		namespace := find[corev1.Namespace](t, objects, "olm")
		level, errs := podsecurity.PolicyToEvaluate(namespace.Labels, podsecurity.Policy{})
		require.Empty(t, errs)
		require.Equal(t, podsecurity.LevelRestricted, level.Enforce.Level)
		pod := find[appsv1.Deployment](t, objects, "olm").Spec.Template
		for _, result := range evaluator.EvaluatePod(level.Enforce, &pod.ObjectMeta, &pod.Spec) {
			require.True(t, result.Allowed, "%s: %s", result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
}

// TestObjectsReferToEachOther: names, labels and ports that must be the same.
func TestObjectsReferToEachOther(t *testing.T) {
	for _, folder := range overlays {
		objects := rendered(t, folder)
		deployment := find[appsv1.Deployment](t, objects, "olm")
		pod := deployment.Spec.Template
		account := find[corev1.ServiceAccount](t, objects, pod.Spec.ServiceAccountName)
		subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
		for _, o := range objects {
			switch o.GetKind() {
			case "RoleBinding", "ClusterRoleBinding":
				binding := find[rbacv1.ClusterRoleBinding](t, []*unstructured.Unstructured{as("ClusterRoleBinding", o)}, o.GetName())
				require.Empty(t, cmp.Diff(subjects, binding.Subjects), o.GetName())
				require.True(t, slices.ContainsFunc(objects, func(role *unstructured.Unstructured) bool {
					return role.GetKind() == binding.RoleRef.Kind && role.GetName() == binding.RoleRef.Name
				}), "%s binds %s", o.GetName(), binding.RoleRef.Name)
			case "CustomResourceDefinition", "ClusterRole", "Namespace":
			default:
				require.Equal(t, "olm", o.GetNamespace(), "%s %s", o.GetKind(), o.GetName())
			}
		}
		for _, selector := range []*metav1.LabelSelector{
			deployment.Spec.Selector, pod.Spec.TopologySpreadConstraints[0].LabelSelector,
			find[policyv1.PodDisruptionBudget](t, objects, "olm").Spec.Selector,
			{MatchLabels: find[corev1.Service](t, objects, "olm-metrics").Spec.Selector},
		} {
			selects, err := metav1.LabelSelectorAsSelector(selector)
			require.NoError(t, err)
			require.True(t, selects.Matches(labels.Set(pod.Labels)), selector)
		}
		manager := pod.Spec.Containers[0]
		ports := map[string]string{}
		for _, p := range manager.Ports {
			ports[p.Name] = fmt.Sprintf(":%d", p.ContainerPort)
		}
		require.Contains(t, manager.Args, "--metrics-bind-address="+ports["metrics"])
		require.Contains(t, manager.Args, "--health-probe-bind-address="+ports["health"])
		require.Contains(t, manager.Args, "--leader-election-namespace="+find[rbacv1.Role](t, objects, "olm-leader-election").Namespace)
		require.Equal(t, "health", manager.LivenessProbe.HTTPGet.Port.String())
		require.Equal(t, "health", manager.ReadinessProbe.HTTPGet.Port.String())
		require.Equal(t, "metrics", find[corev1.Service](t, objects, "olm-metrics").Spec.Ports[0].TargetPort.String())
	}
}

// as returns an object under another kind that has the same fields.
func as(kind string, o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetKind(kind)
	return o
}

// TestAServiceMonitorIsAComponent: clusters without the Prometheus operator would refuse it.
func TestAServiceMonitorIsAComponent(t *testing.T) {
	for _, folder := range overlays {
		for _, o := range rendered(t, folder) {
			require.NotEqual(t, "ServiceMonitor", o.GetKind())
		}
	}
	monitor := rendered(t, "servicemonitor")
	require.Len(t, monitor, 1)
	selected, _, err := unstructured.NestedStringMap(monitor[0].Object, "spec", "selector", "matchLabels")
	require.NoError(t, err)
	service := find[corev1.Service](t, rendered(t, "default"), "olm-metrics")
	require.Equal(t, service.Labels, selected)
	endpoints, _, err := unstructured.NestedSlice(monitor[0].Object, "spec", "endpoints")
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{"port": service.Spec.Ports[0].Name}}, endpoints)
}

// TestAConfigurationFileIsAComponent checks that the component mounts its file at the path that it gives to the
// manager, and that the manager can read the file.
func TestAConfigurationFileIsAComponent(t *testing.T) {
	memory := filesys.MakeFsInMemory()
	require.NoError(t, fs.WalkDir(os.DirFS("."), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		return memory.WriteFile(path, data)
	}))
	overlay := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [../default]\ncomponents: [../configfile]\n"
	require.NoError(t, memory.WriteFile("overlay/kustomization.yaml", []byte(overlay)))
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, "overlay")
	require.NoError(t, err)
	var objects []*unstructured.Unstructured
	for _, r := range all.Resources() {
		fields, err := r.Map()
		require.NoError(t, err)
		objects = append(objects, &unstructured.Unstructured{Object: fields})
	}
	pod := find[appsv1.Deployment](t, objects, "olm").Spec.Template.Spec
	require.Len(t, pod.Volumes, 1)
	file := find[corev1.ConfigMap](t, objects, pod.Volumes[0].ConfigMap.Name)
	require.Equal(t, "olm", file.Namespace)
	manager := pod.Containers[0]
	require.Equal(t, []corev1.VolumeMount{{Name: pod.Volumes[0].Name, MountPath: "/etc/olm", ReadOnly: true}}, manager.VolumeMounts)
	require.Contains(t, manager.Args, "--config="+manager.VolumeMounts[0].MountPath+"/config.yaml")
	require.Contains(t, manager.Args, "--leader-elect", "the other arguments stay")
	mounted := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(mounted, []byte(file.Data["config.yaml"]), 0o600))
	require.NoError(t, command.New().Parse([]string{"--config", mounted}, nil))
}

func TestAFolderThatIsNotThere(t *testing.T) {
	_, err := config.Render("production")
	require.ErrorContains(t, err, "production: ")
}
