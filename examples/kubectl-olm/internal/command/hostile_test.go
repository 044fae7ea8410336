// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/examples/internal/dryrun"
	"github.com/olmcore/olm/examples/kubectl-olm/report"
)

// hostile clears a screen, moves the cursor, sets the title of a terminal, reorders a line, and is a page with a
// script.
const hostile = "\x1b[2J\x1b]0;owned\x07\u009b31m\u202egnp.exe\u2066\u200b\u2028\U000e0041\u2800<script>alert(1)</script>\"'`;&#x1b;"

// hostileWorld is the world of the stories, in which a tenant says that.
func hostileWorld(t *testing.T, isNamed bool) string {
	text, err := os.ReadFile(worldFile)
	require.NoError(t, err)
	in := strings.Trim(strconv.QuoteToASCII(hostile), `"`)
	in = strings.ReplaceAll(in, `\'`, "'")
	for _, old := range []string{`"mirror.v1.0.0 needs an operator`, `"containers with unready status`} {
		require.Contains(t, string(text), old)
		text = bytes.ReplaceAll(text, []byte(old), []byte(`"`+in+old[1:]))
	}
	for _, name := range []string{"spec: {name: etcd, channel: alpha", "message: 'Back-off pulling", "reason: ConstraintsNotSatisfiable"} {
		require.Contains(t, string(text), name)
	}
	s := strings.ReplaceAll(string(text), "channel: alpha", `channel: "`+in+`"`)
	s = strings.ReplaceAll(s, `'Back-off pulling image "registry.example.com/broker:2"'`, `"`+in+`"`)
	s = strings.ReplaceAll(s, "reason: ConstraintsNotSatisfiable", `reason: "`+in+`"`)
	s = strings.ReplaceAll(s, "currentCSV: storage.v3.1.0", `currentCSV: "`+in+`"`)
	if isNamed { // files may name objects as no API server would
		s = strings.ReplaceAll(s, "name: install-22222", `name: "`+in+`"`)
	}
	file := filepath.Join(t.TempDir(), "hostile.yaml")
	require.NoError(t, os.WriteFile(file, []byte(s), 0o600))
	return file
}

// hostileCatalog is the catalog of the stories, in which a message and a channel say that.
func hostileCatalog(t *testing.T) string {
	text, err := os.ReadFile("../../testdata/catalog.yaml")
	require.NoError(t, err)
	in := strconv.QuoteToASCII(hostile)
	in = strings.ReplaceAll(in, `\'`, "'")
	s := strings.ReplaceAll(string(text), "message: It loses snapshots that are larger than 2 GiB.", "message: "+in)
	s = strings.ReplaceAll(s, "name: candidate", "name: "+in)
	require.Equal(t, 2, strings.Count(s, in))
	file := filepath.Join(t.TempDir(), "catalog.yaml")
	require.NoError(t, os.WriteFile(file, []byte(s), 0o600))
	return file
}

// TestNothingThatATenantWroteReachesATerminalAsItIs checks that no command prints a character that people do not see, in any format.
// A format that a command does not have is an error, which is checked, too.
func TestNothingThatATenantWroteReachesATerminalAsItIs(t *testing.T) {
	file, named, catalog := hostileWorld(t, false), hostileWorld(t, true), hostileCatalog(t)
	for _, args := range []string{
		"status", "why mirror", "why etcd", "why broker", "why csv/broker.v2.1.0", "why ip/install-11111", "why storage", "next", "audit",
		"status --catalog olm/community=" + catalog, "next --catalog olm/community=" + catalog,
		"path backup --catalog olm/community=" + catalog, "path etcd --catalog olm/community=" + catalog,
		"catalog --catalog olm/community=" + catalog, "catalog backup --catalog olm/community=" + catalog,
		"approve storage --dry-run", "approve etcd --dry-run", "approve broker --dry-run", "approve ip/\x1b --dry-run",
		"rollback storage --dry-run",
		"why \x1b[2J", "status \u202e", "why \x1b/x", "path \x1b=", "\x1b[2J", "status -l \x1b", "status --\x1b", "catalog --catalog \x1b=x",
	} {
		for _, format := range []string{"", "wide", "json", "yaml", "mermaid", "html", "\u202e"} {
			fields := strings.Split(args, " ")
			if format != "" {
				fields = append(fields, "-o", format)
			}
			code, out, errs := run(t, "", append(slices.Clone(fields), "-f", file, "--complete")...)
			require.Contains(t, []int{0, 1, 2}, code, errs)
			_, more, problems := run(t, "", append(fields, "-f", named, "--complete")...)
			for _, r := range out + errs + more + problems {
				require.True(t, r == '\n' || unicode.IsPrint(r) && r != '\u2800', "%s -o %s prints %U", args, format, r)
			}
			if format == "html" {
				require.NotContains(t, out, "<script", args)
			}
			if format == "html" && strings.HasPrefix(args, "status") && code == 0 {
				require.Contains(t, out, "&lt;script&gt;")
			}
		}
	}
	_, out, _ := run(t, "", "why", "mirror", "-f", file, "--complete", "-o", "json")
	var r report.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Contains(t, r.Message, hostile, "a program gets what was written")
	_, out, _ = run(t, "", "why", "mirror", "-f", file, "--complete", "-o", "yaml")
	require.NoError(t, yaml.Unmarshal([]byte(out), &r))
	require.Contains(t, r.Message, hostile)
}

// TestSecretsAreNotPrinted: also where a key takes the place of another.
func TestSecretsAreNotPrinted(t *testing.T) {
	input, key, now := rotating(t)
	for _, args := range []string{"next", "next -o json", "next -o yaml", "audit -o json", "status -o json"} {
		code, out, errs := run(t, input, append(strings.Fields(args), "-f", "-", "--complete", "--now", now)...)
		require.Zero(t, code, errs)
		require.NotContains(t, out+errs, key)
		require.Equal(t, strings.HasPrefix(args, "next"), strings.Contains(out, "CertificateRotation"), "the Secret is to be changed")
	}
}

// rotating is a world, as a list, in which an operator's next key is to take the place of the one that it has.
func rotating(t *testing.T) (list, key, now string) {
	read, err := dryrun.Read([]string{"../../../../csv/testdata/base.yaml", "../../../../csv/testdata/webhook.yaml"}, nil)
	require.NoError(t, err)
	cluster, err := dryrun.Load(read, clock)
	require.NoError(t, err)
	settled, err := dryrun.Run(t.Context(), cluster, nil, dryrun.Options{Settle: true, Advance: time.Hour})
	require.NoError(t, err)
	for _, o := range settled.World {
		if o["kind"] != "Secret" {
			continue
		}
		data := o["data"].(map[string]any)
		for _, part := range []string{"olmCAKey", "tls.crt", "tls.key"} {
			data["next."+part] = data[part]
			delete(data, part)
		}
		key = data["next.tls.key"].(string)
		o["metadata"].(map[string]any)["annotations"] = map[string]any{
			corev1.LastAppliedConfigAnnotation: key, "olmcore/next-trusted-since": "2026-01-01T00:00:00Z",
		}
	}
	require.NotEmpty(t, key)
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": settled.World})
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), `"phase":"Succeeded"`, `"phase":"InstallReady"`), key, settled.Now
}

// TestATenantDoesNotChooseTheGlobalNamespace checks that the Subscriptions of one namespace count once, and that stderr has the choice.
func TestATenantDoesNotChooseTheGlobalNamespace(t *testing.T) {
	var objects strings.Builder
	subscribe := func(namespace, name, catalogs string) {
		fmt.Fprintf(&objects, "---\n{apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, metadata: {namespace: %s, name: %s}, "+
			"spec: {name: p, channel: c, source: s, sourceNamespace: %s}}\n", namespace, name, catalogs)
	}
	subscribe("a", "one", "olm")
	subscribe("b", "one", "olm")
	for i := range 5 {
		subscribe("evil", fmt.Sprint("s", i), "attack")
	}
	const choice = "Catalogs of namespace olm are treated as global. Subscriptions also name: attack. " +
		"If one of these has the global catalogs, set --global-catalog-namespace\n"
	_, out, errs := run(t, objects.String(), "next", "-f", "-", "--complete", "-A")
	require.Equal(t, choice, errs)
	require.Contains(t, out, "\nCatalogs of namespace olm are treated as global.\n")
	_, out, errs = run(t, objects.String(), "next", "-f", "-", "--complete", "-A", "--global-catalog-namespace", "attack")
	require.Empty(t, errs)
	require.Contains(t, out, "\nCatalogs of namespace attack are treated as global.\n")
}
