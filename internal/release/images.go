// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// image is one of those that the Dockerfiles build, with its tag: in a manifest, in a Kustomization, or in a command.
// The registry stands for one of the user's.
var image = regexp.MustCompile(`(registry\.example\.com/(?:olm|packageserver)(?::|\n *newTag: ))[\w.-]+`)

// pinImages makes a version the tag of the images, and returns the files that changed: under a tag that stays the same
// a node that has the image already would not get that of the next version.
func pinImages(root, version string) (changed []string, err error) {
	files, err := git(root, "ls-files", "--cached", "--others", "--exclude-standard", "--", "examples/*.yaml", "examples/*.md", "examples/*Dockerfile")
	if err != nil {
		return nil, err
	}
	for _, file := range strings.Fields(files) {
		name := filepath.Join(root, filepath.FromSlash(file))
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		next := image.ReplaceAllString(string(data), "${1}"+version)
		if next == string(data) {
			continue
		}
		changed = append(changed, file)
		if err := os.WriteFile(name, []byte(next), 0o644); err != nil {
			return nil, err
		}
	}
	return changed, nil
}
