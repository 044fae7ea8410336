// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestPodHashesAreThoseOfOLM pins the hashes that OLM gives its Pods. A change
// here means that every catalog Pod of an adopted cluster would be replaced.
func TestPodHashesAreThoseOfOLM(t *testing.T) {
	requests := corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("50Mi"),
	}}
	plain := shape{
		container: "name", image: "image", serviceAccount: "service-account", startupFailures: DefaultStartupFailures,
		resources: requests, userID: 1001, opmImage: "opmImage", utilImage: "utilImage",
	}
	extract := func(cache string, restricted bool) shape {
		s := plain
		s.restricted = restricted
		s.config = &v1alpha1.GrpcPodConfig{ExtractContent: &v1alpha1.ExtractContentConfig{CatalogDir: "/catalog", CacheDir: cache}}
		return s
	}
	memory, restricted := plain, plain
	memory.config = &v1alpha1.GrpcPodConfig{MemoryTarget: new(resource.MustParse("5Mi"))}
	restricted.restricted = true
	shipped := shape{
		container: imageServer, image: "quay.io/example/catalog:v1", serviceAccount: "demo", readinessDelay: 5, livenessDelay: 10,
		startupFailures: DefaultStartupFailures, resources: requests,
	}
	pull := shipped
	pull.restricted, pull.userID, pull.pullSecrets = true, 1001, []corev1.LocalObjectReference{{Name: "pull"}}
	for name, test := range map[string]struct {
		shape   shape
		profile profile
		want    string
	}{
		"plain":                 {plain, profileMain, "cBESV2Miwqi3TX1KELgXItd7j206e4q6b21BnP"},
		"plain of v0.46":        {plain, profileV046, "KpDeU9UesY5GlqG7ZUg9deo8Jp7mEGdpBhGJn"},
		"plain of v0.41":        {plain, profileV041, "8SbHWyYfjbRT8lLcfdZ5ofXNdC1GE6ayztILTF"},
		"memory target":         {memory, profileMain, "22OBIOEoFxFjed27eJvvYzqL0TfdXsuapKoxsE"},
		"extract, cache":        {extract("/tmp/cache", false), profileMain, "30fzEky6rWPSaUHUtTN3mbl0SvE2PryXPIr090"},
		"extract":               {extract("", false), profileMain, "57eMKS6v8du5evWOTeBJEFYx7r5udVxvhEQpLB"},
		"restricted":            {restricted, profileMain, "bfNQa9OTbkeciTpFoCgpKhNENGjVjY61PYAoYA"},
		"extract, cache, restr": {extract("/tmp/cache", true), profileMain, "5CPn3qG7EdDS0mOX7AazM9Tt1RBtR6bjjMmmep"},
		"extract, restricted":   {extract("", true), profileMain, "adSLBZw1o1geKStnSKaiQEubBnN4eqkHabCyHs"},
		"shipped":               {shipped, profileMain, "8mkB2lJDec9CxOdLU78pHV2eHSvKaMQM3tjk9Z"},
		"shipped of v0.46":      {shipped, profileV046, "3D0S63IDfCwSkylU1gp8djRRUfCMESGJUlgnHa"},
		"shipped of v0.41":      {shipped, profileV041, "1xzDUvKt8KQmd0WAUWBAkQxkpRkbq3RyYYYAm"},
		"with everything":       {pull, profileMain, "aMCykuuUCl8qjO4Us8ZvytMPeNxzeUh9s3FRc8"},
	} {
		require.Equal(t, test.want, test.shape.hash(test.profile), name)
	}
}
