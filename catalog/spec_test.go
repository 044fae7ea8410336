// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/olmcore"
)

// TestInvalidSpecsAreReported checks which Pods are kept, and what the status and the Diagnostics report, for
// mistakes in a CatalogSource that have no test of their own.
func TestInvalidSpecsAreReported(t *testing.T) {
	images := converged(t, catalog.Config{}, cool())
	maps := mappedInput(t, catalog.Config{})
	config := func(change func(*v1alpha1.GrpcPodConfig)) func(*catalog.Input) {
		return func(in *catalog.Input) {
			edit(in, func(s *v1alpha1.CatalogSourceSpec) {
				s.GrpcPodConfig = &v1alpha1.GrpcPodConfig{}
				change(s.GrpcPodConfig)
			})
		}
	}
	annotated := func(key, value string) func(*catalog.Input) {
		return func(in *catalog.Input) {
			in.CatalogSource.Annotations = map[string]string{key: value}
			in.Pods.Items = nil // with something to do, everything is said
		}
	}
	first, outdated := []string{"create a Pod PodMissing"}, []string{"create a Pod PodOutdated"}
	for name, test := range map[string]struct {
		base     catalog.Input
		change   func(*catalog.Input)
		done     []string
		degraded string
		said     string
	}{
		"a source type in another case": {images, edited(func(s *v1alpha1.CatalogSourceSpec) { s.SourceType = "GRPC" }), nil, catalog.ReasonSpecInvalid, "unknown sourcetype: GRPC"},
		"an address beside a config map": {maps, func(in *catalog.Input) {
			edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Address = "foo:1" })
			in.Pods.Items = nil
		}, first, catalog.ReasonAsExpected, "spec.address has no effect beside spec.configMap"},
		"an image in upper case is the runtime's to judge": {images, edited(func(s *v1alpha1.CatalogSourceSpec) { s.Image = "Quay.io/Example/Catalog:v1" }), []string{"create a Pod PodOutdated"}, catalog.ReasonAsExpected, ""},
		"an image with white space inside":                 {images, edited(func(s *v1alpha1.CatalogSourceSpec) { s.Image = "quay.io/a b" }), nil, catalog.ReasonSpecInvalid, "image contains white space"},
		"a pull secret that does not exist": {images, func(in *catalog.Input) { waiting(in, "ErrImagePull") },
			nil, catalog.ReasonImagePullFailed, "cannot pull its image"},
		"a negative memory target": {images, config(func(c *v1alpha1.GrpcPodConfig) { c.MemoryTarget = new(resource.MustParse("-5Mi")) }),
			nil, catalog.ReasonSpecInvalid, "memoryTarget must not be negative"},
		"a negative memory target of a config map": {maps, config(func(c *v1alpha1.GrpcPodConfig) { c.MemoryTarget = new(resource.MustParse("-5Mi")) }),
			nil, catalog.ReasonSpecInvalid, "memoryTarget must not be negative"},
		"no memory target": {images, config(func(c *v1alpha1.GrpcPodConfig) { c.MemoryTarget = new(resource.MustParse("0")) }),
			outdated, catalog.ReasonAsExpected, "memoryTarget is 0"},
		"no catalog directory": {images, config(func(c *v1alpha1.GrpcPodConfig) { c.ExtractContent = &v1alpha1.ExtractContentConfig{} }),
			outdated, catalog.ReasonAsExpected, "catalogDir is not an absolute path"},
		"a relative catalog directory": {images, config(func(c *v1alpha1.GrpcPodConfig) {
			c.ExtractContent = &v1alpha1.ExtractContentConfig{CatalogDir: "configs", CacheDir: "/cache"}
		}), outdated, catalog.ReasonAsExpected, "catalogDir is not an absolute path"},
		"a relative cache directory": {images, config(func(c *v1alpha1.GrpcPodConfig) {
			c.ExtractContent = &v1alpha1.ExtractContentConfig{CatalogDir: "/configs", CacheDir: "cache"}
		}), outdated, catalog.ReasonAsExpected, "cacheDir is not an absolute path"},
		"a security context that is none": {images, config(func(c *v1alpha1.GrpcPodConfig) { c.SecurityContextConfig = "Restricted" }),
			nil, catalog.ReasonSpecInvalid, "securityContextConfig must be legacy or restricted"},
		"content settings on a config map": {maps, func(in *catalog.Input) {
			config(func(c *v1alpha1.GrpcPodConfig) { c.ExtractContent = &v1alpha1.ExtractContentConfig{} })(in)
			in.Pods.Items = nil
		}, first, catalog.ReasonAsExpected, "extractContent has no effect on a config map"},
		"replicas that are no number":   {images, annotated("olmcore/replicas", "two"), first, catalog.ReasonAsExpected, "the annotation olmcore/replicas is invalid, so the default is used"},
		"too many replicas":             {images, annotated("olmcore/replicas", "6"), first, catalog.ReasonAsExpected, "the annotation olmcore/replicas is invalid, so the default is used"},
		"no replicas":                   {images, annotated("olmcore/replicas", "0"), first, catalog.ReasonAsExpected, "the annotation olmcore/replicas is invalid, so the default is used"},
		"a policy that is none":         {images, annotated("olmcore/force-delete-policy", "always"), first, catalog.ReasonAsExpected, "the annotation olmcore/force-delete-policy is invalid, so the default is used"},
		"resources that are no JSON":    {images, annotated("olmcore/resources", "{"), first, catalog.ReasonAsExpected, "the annotation olmcore/resources is invalid, so the default is used"},
		"resources that are no amounts": {images, annotated("olmcore/resources", `{"requests":{"memory":"much"}}`), first, catalog.ReasonAsExpected, "the annotation olmcore/resources is invalid, so the default is used"},
		"a creation in the future counts as now": {images, func(in *catalog.Input) {
			pollAgo(0, nil)(in)
			in.CatalogSource.Status.LatestImageRegistryPoll = nil
			in.CatalogSource.CreationTimestamp = metav1.NewTime(in.Now.Add(time.Hour))
		}, nil, catalog.ReasonAsExpected, ""},
		"two candidates of one poll": {images, pollAgo(time.Minute, func(in *catalog.Input) {
			probe(nil)(in)
			second := in.Pods.Items[1].DeepCopy()
			second.Name, second.UID = "cool-zzz", "second"
			in.Pods.Items = append(in.Pods.Items, second)
		}), []string{"delete cool-zz UpToDate", "delete cool-zzz UpToDate"}, catalog.ReasonAsExpected, ""},
		"three Pods that serve": {images, func(in *catalog.Input) {
			addPod(in, "cool-zz", func(*corev1.Pod) {})
			addPod(in, "cool-zzz", func(p *corev1.Pod) { p.UID = "third" })
		}, []string{"delete cool-zz PodSurplus", "delete cool-zzz PodSurplus"}, catalog.ReasonAsExpected, ""},
		"a config map server without image": {maps, func(in *catalog.Input) { in.Config.ConfigMapServerImage, in.Pods.Items = "", nil }, first, catalog.ReasonAsExpected, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out := reconcile(t, test.base, test.change)
			require.Equal(t, test.done, done(out))
			degraded := catalog.ReasonAsExpected
			if status, ok := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions); ok {
				degraded = meta.FindStatusCondition(status.Status.Conditions, "Degraded").Reason
			}
			require.Equal(t, test.degraded, degraded)
			require.Equal(t, test.said != "", slices.ContainsFunc(out.Diagnostics, func(d olmcore.Diagnostic) bool {
				return test.said != "" && strings.Contains(d.Message, test.said)
			}), "%+v", out.Diagnostics)
			require.NotEqual(t, "foo:1", out.Connection.Address)
		})
	}
}

// TestSpecProblemsAreReportedInTheStatus checks the message in the status for every problem of a spec.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/operator_test.go.
func TestSpecProblemsAreReportedInTheStatus(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	image := func(change func(*v1alpha1.GrpcPodConfig)) func(*v1alpha1.CatalogSourceSpec) {
		return func(s *v1alpha1.CatalogSourceSpec) {
			s.GrpcPodConfig = &v1alpha1.GrpcPodConfig{}
			change(s.GrpcPodConfig)
		}
	}
	address := func(a string) func(*v1alpha1.CatalogSourceSpec) {
		return func(s *v1alpha1.CatalogSourceSpec) { s.Image, s.Address = "", a }
	}
	for message, change := range map[string]func(*v1alpha1.CatalogSourceSpec){
		`unknown sourcetype: x\u202e`: func(s *v1alpha1.CatalogSourceSpec) {
			s.SourceType = "x\u202e"
		},
		"unknown sourcetype: ": func(s *v1alpha1.CatalogSourceSpec) { s.SourceType = "" },
		"configmap name unset: must be set for sourcetype: configmap":                   func(s *v1alpha1.CatalogSourceSpec) { s.SourceType = "configmap" },
		"configmap name unset: must be set for sourcetype: internal":                    func(s *v1alpha1.CatalogSourceSpec) { s.SourceType = "internal" },
		"image and address unset: at least one must be set for sourcetype: grpc":        func(s *v1alpha1.CatalogSourceSpec) { s.Image = "" },
		"image contains white space":                                                    func(s *v1alpha1.CatalogSourceSpec) { s.Image = " x" },
		"securityContextConfig must be legacy or restricted":                            image(func(c *v1alpha1.GrpcPodConfig) { c.SecurityContextConfig = "open" }),
		"couldn't connect to registry - address foo.com: missing port in address":       address("foo.com"),
		"couldn't connect to registry - address http://x:1: too many colons in address": address("http://x:1"),
		"couldn't connect to registry - address :1: missing host in address":            address(":1"),
		"couldn't connect to registry - address x:0: invalid port in address":           address("x:0"),
		"couldn't connect to registry - address [::1]:65536: invalid port in address":   address("[::1]:65536"),
	} {
		out := reconcile(t, base, func(in *catalog.Input) { edit(in, change) })
		require.Len(t, out.Actions, 1, message)
		status, ok := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
		require.True(t, ok)
		require.Equal(t, message, status.Status.Message)
		want := v1alpha1.CatalogSourceSpecInvalidError
		if strings.HasPrefix(message, "couldn't") {
			want = v1alpha1.CatalogSourceRegistryServerError
		}
		require.Equal(t, want, status.Status.Reason)
	}
	for _, ok := range []string{"registry:50051", "[::1]:1", "10.0.0.1:65535"} {
		out := reconcile(t, base, func(in *catalog.Input) { edit(in, address(ok)) })
		require.Equal(t, catalog.ConnectionRequest{Verb: catalog.ConnectionConnect, Address: ok}, out.Connection)
	}
}

// TestMessageRecordedByOLMIsKept checks that a recorded message is not rewritten only because its characters would be
// escaped.
func TestMessageRecordedByOLMIsKept(t *testing.T) {
	const raw = "unknown sourcetype: x\u202e"
	change := func(s *v1alpha1.CatalogSourceSpec) { s.SourceType = "x\u202e" }
	out := reconcile(t, converged(t, catalog.Config{}, cool()), func(in *catalog.Input) {
		edit(in, change)
		in.CatalogSource.Status.Message = raw
	})
	status, ok := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
	require.True(t, ok, "the conditions are new")
	require.Equal(t, raw, status.Status.Message)
}

// TestInvalidServiceNamesAreReported checks that a catalog whose name is no valid Service name reports that, and
// creates no Service that the API server would reject.
func TestInvalidServiceNamesAreReported(t *testing.T) {
	for name, valid := range map[string]bool{
		"cool": true, "a.b": true, "a" + strings.Repeat("b", 62): true,
		"a" + strings.Repeat("b", 63): false, "1cool": false, "Cool": false, "cool-": false, "cool.": false, "co_ol": false,
	} {
		for _, spec := range []v1alpha1.CatalogSourceSpec{cool().Spec, mapped().Spec} {
			cs := cool()
			cs.Name, cs.UID, cs.Spec = name, "uid", spec
			a := catalog.Assess(emptyNamespace(catalog.Input{Now: start, CatalogSource: cs, Namespace: olmNamespace(), ConfigMap: content()}))
			require.Equal(t, valid, a.State != catalog.StateInvalid, "%s: %+v", name, a.Conditions)
		}
	}
}
