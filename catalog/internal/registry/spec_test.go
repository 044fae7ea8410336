// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	_ "github.com/olmcore/olm/internal/seeded"
)

// TestPodHashesAreThoseOfOLM pins the hashes that OLM gives its Pods. A change here means that every catalog Pod of an
// adopted cluster would be replaced.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler/reconciler_test.go.
func TestPodHashesAreThoseOfOLM(t *testing.T) {
	requests := corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("50Mi"),
	}}
	open := Registry{
		Source: &v1alpha1.CatalogSource{}, StartupFailures: 15, Resources: requests, UserID: 1001, OPMImage: "opmImage", UtilImage: "utilImage",
	}
	tight := open
	tight.Restricted = true
	pulls := tight
	pulls.pullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
	plain := podShape{registry: &open, container: "name", image: "image", serviceAccount: "service-account"}
	restricted, memory := plain, plain
	restricted.registry = &tight
	memory.config = &v1alpha1.GrpcPodConfig{MemoryTarget: new(resource.MustParse("5Mi"))}
	extract := func(s podShape, cache string) podShape {
		s.config = &v1alpha1.GrpcPodConfig{ExtractContent: &v1alpha1.ExtractContentConfig{CatalogDir: "/catalog", CacheDir: cache}}
		return s
	}
	shipped := podShape{&open, "registry-server", "quay.io/example/catalog:v1", "demo", 5, 10, nil}
	everything := shipped
	everything.registry = &pulls
	for name, test := range map[string]struct {
		shape podShape
		probe corev1.ProbeHandler
		want  string
	}{
		"plain":                 {plain, probeMain, "cBESV2Miwqi3TX1KELgXItd7j206e4q6b21BnP"},
		"plain of v0.46":        {plain, probeV046, "KpDeU9UesY5GlqG7ZUg9deo8Jp7mEGdpBhGJn"},
		"plain of v0.41":        {plain, probeV041, "8SbHWyYfjbRT8lLcfdZ5ofXNdC1GE6ayztILTF"},
		"memory target":         {memory, probeMain, "22OBIOEoFxFjed27eJvvYzqL0TfdXsuapKoxsE"},
		"extract, cache":        {extract(plain, "/tmp/cache"), probeMain, "30fzEky6rWPSaUHUtTN3mbl0SvE2PryXPIr090"},
		"extract":               {extract(plain, ""), probeMain, "57eMKS6v8du5evWOTeBJEFYx7r5udVxvhEQpLB"},
		"restricted":            {restricted, probeMain, "bfNQa9OTbkeciTpFoCgpKhNENGjVjY61PYAoYA"},
		"extract, cache, restr": {extract(restricted, "/tmp/cache"), probeMain, "5CPn3qG7EdDS0mOX7AazM9Tt1RBtR6bjjMmmep"},
		"extract, restricted":   {extract(restricted, ""), probeMain, "adSLBZw1o1geKStnSKaiQEubBnN4eqkHabCyHs"},
		"shipped":               {shipped, probeMain, "8mkB2lJDec9CxOdLU78pHV2eHSvKaMQM3tjk9Z"},
		"shipped of v0.46":      {shipped, probeV046, "3D0S63IDfCwSkylU1gp8djRRUfCMESGJUlgnHa"},
		"shipped of v0.41":      {shipped, probeV041, "1xzDUvKt8KQmd0WAUWBAkQxkpRkbq3RyYYYAm"},
		"with everything":       {everything, probeMain, "aMCykuuUCl8qjO4Us8ZvytMPeNxzeUh9s3FRc8"},
	} {
		require.Equal(t, test.want, podHash(test.shape.spec(test.probe)), name)
	}
}

// TestMemoryLimitsAreValidForTheGoRuntime checks the value of GOMEMLIMIT for memory targets.
func TestMemoryLimitsAreValidForTheGoRuntime(t *testing.T) {
	for target, want := range map[string]string{
		"5Mi": "5MiB", "512Mi": "512MiB", "1Gi": "1GiB", "512M": "512000000B", "1G": "1000000000B", "1e9": "1000000000B", "1500m": "2B", "100": "100B", "2Pi": "2251799813685248B",
		"0": "0B", "8388607Ti": "8388607TiB", "10000000001G": "9223372036854775807B", "8388608Ti": "9223372036854775807B",
	} {
		quantity := resource.MustParse(target)
		before := quantity.DeepCopy()
		config := &v1alpha1.GrpcPodConfig{MemoryTarget: &quantity}
		spec := podShape{registry: &Registry{Source: &v1alpha1.CatalogSource{}}, config: config}.spec(probeMain)
		require.Equal(t, []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: want}}, spec.Containers[0].Env, target)
		require.Equal(t, before, quantity, "the spec was written to")
	}
}

// TestEveryMemoryTargetGivesAValidLimit checks that GOMEMLIMIT always has a valid value, and that it is OLM's value
// if that is valid.
func TestEveryMemoryTargetGivesAValidLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[1-9][0-9]{0,12}(\.[0-9]{1,3})?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi|e[0-9]|E[0-9])?`).Draw(t, "quantity")
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return
		}
		var c corev1.Container
		setMemoryTarget(&c, quantity)
		limit := c.Env[0].Value
		require.True(t, isMemoryLimit(limit), limit)
		quantity.Format = resource.BinarySI
		if upstream := quantity.String() + "B"; isMemoryLimit(upstream) {
			require.Equal(t, upstream, limit)
		}
	})
}

var byteCount = regexp.MustCompile(`^([0-9]+)(B|KiB|MiB|GiB|TiB)$`)

// isMemoryLimit reports whether the Go runtime takes a text for GOMEMLIMIT: a number and its unit, of fewer than 2^63
// bytes.
func isMemoryLimit(text string) bool {
	match := byteCount.FindStringSubmatch(text)
	if match == nil {
		return false
	}
	bytes, _ := new(big.Int).SetString(match[1], 10)
	return bytes.Lsh(bytes, uint(10*strings.Index("BKMGT", match[2][:1]))).IsInt64()
}
