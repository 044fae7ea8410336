// SPDX-License-Identifier: Apache-2.0

package requirement

import (
	"fmt"
	"strings"

	semver "github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// kubernetesVersion is spec.minKubeVersion.
var kubernetesVersion = Requirement{Name: "KubernetesVersion", Judge: judgeKubernetesVersion}

func judgeKubernetesVersion(o *Observed) []v1alpha1.RequirementStatus {
	minimum := o.CSV.Spec.MinKubeVersion
	if minimum == "" {
		return nil
	}
	r := v1alpha1.RequirementStatus{
		Group: v1alpha1.GroupName, Version: v1alpha1.GroupVersion, Kind: v1alpha1.ClusterServiceVersionKind,
		Name: o.CSV.Name, Status: notSatisfied,
	}
	release, _, _ := strings.Cut(o.KubernetesVersion, "-")
	server, serverErr := parseKubernetesVersion(release)
	want, wantErr := parseKubernetesVersion(minimum)
	switch {
	case o.KubernetesVersion == "":
		r.Message = "Server version discovery error"
	case serverErr != nil:
		r.Message = "Server version parsing error"
	case wantErr != nil:
		r.Message = "CSV version parsing error"
	case want.GT(server):
		r.Message = fmt.Sprintf("CSV version requirement not met: minKubeVersion (%s) > server version (%s)", minimum, server)
	default:
		r.Status, r.Message = present, fmt.Sprintf("CSV minKubeVersion (%s) less than server version (%s)", minimum, o.KubernetesVersion)
	}
	return []v1alpha1.RequirementStatus{r}
}

// parseKubernetesVersion accepts what semver does, one leading v, and a version without its patch number.
func parseKubernetesVersion(s string) (semver.Version, error) {
	s = strings.TrimPrefix(s, "v")
	core := strings.IndexAny(s, "-+")
	if core < 0 {
		core = len(s)
	}
	if strings.Count(s[:core], ".") == 1 {
		s = s[:core] + ".0" + s[core:]
	}
	return semver.Parse(s)
}
